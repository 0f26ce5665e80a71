//! Who is at the other end of a connection.

use std::{fmt, net::SocketAddr, sync::Arc};

/// Where the requests of a connection come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Through a Unix socket.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(SocketAddr::V4(address)) => {
                // By hand: every line of the access log has one.
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

/// What a client's certificate says of it, which an authority has confirmed that the operator trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The distinguished name of its subject in the form of RFC 4514, e.g. `CN=trainer,O=Example`.
    pub subject: Box<str>,
}

/// The client of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Where it is.
    pub peer: Peer,
    /// What it has proved to be when the connection began; `None` where it was not asked.
    pub certificate: Option<Arc<ClientCertificate>>,
}
