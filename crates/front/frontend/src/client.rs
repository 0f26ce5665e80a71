//! The client of a connection.

use std::{fmt, net::SocketAddr, sync::Arc};

/// The origin of the requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(SocketAddr::V4(address)) => {
                // Written by hand because every line of the access log has an address.
                for (octet, end) in address.ip().octets().into_iter().zip([".", ".", ".", ":"]) {
                    f.write_str(itoa::Buffer::new().format(octet))?;
                    f.write_str(end)?;
                }
                f.write_str(itoa::Buffer::new().format(address.port()))
            }
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// The contents of a client's certificate, confirmed by an authority that the operator trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The distinguished name of its subject in the form of RFC 4514, e.g. `CN=trainer,O=Example`.
    pub subject: Box<str>,
}

/// The client of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The address of the client.
    pub peer: Peer,
    /// The certificate that the client proved when the connection began; `None` if the server did not ask for one.
    pub certificate: Option<Arc<ClientCertificate>>,
}
