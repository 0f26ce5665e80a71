//! The server that requests go to, and the protocol.

use std::path::PathBuf;

/// The wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// KServe v2 over HTTP/1.1.
    Http,
    /// KServe v2 over gRPC (HTTP/2).
    Grpc,
}

/// Compression of gRPC requests (`grpc-encoding`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
}

/// The socket on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP port.
    Tcp {
        /// Name or address, IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket at this path, for clients on the same machine.
    Unix(PathBuf),
}

/// A KServe v2 server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The protocol of all calls.
    pub protocol: Protocol,
    /// The socket of the server.
    pub endpoint: Endpoint,
    /// The path before `/v2` in HTTP: empty, or `/prefix` without a slash at its end.
    pub base_path: String,
    /// HTTP headers or gRPC metadata of every request.
    pub headers: Vec<(String, String)>,
    /// TLS settings; `None`: plain text.
    pub tls: Option<Tls>,
    /// Compression of gRPC requests; HTTP requests are never compressed.
    pub compression: Compression,
}

/// TLS settings. Without `roots` the system's certificate authorities are trusted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM certificates of the authorities to trust.
    pub roots: Option<PathBuf>,
    /// The client's own certificate, for mutual TLS.
    pub certificate_chain: Option<PathBuf>,
    /// The certificate file is DER, not PEM.
    pub certificate_is_der: bool,
    /// The key of the client's certificate.
    pub private_key: Option<PathBuf>,
    /// The key file is DER, not PEM.
    pub private_key_is_der: bool,
    /// Any authority may have signed the server's certificate.
    pub skips_peer: bool,
    /// The server's certificate may lack its name.
    pub skips_host: bool,
}

impl Protocol {
    /// Returns `HTTP` or `gRPC`, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        }
    }

    /// Returns the port that Triton listens on by default.
    pub fn default_port(self) -> u16 {
        match self {
            Protocol::Http => 8000,
            Protocol::Grpc => 8001,
        }
    }
}

impl Endpoint {
    /// Returns the name or address of the machine, IPv6 without brackets. For a Unix socket it is `localhost`.
    pub fn host(&self) -> &str {
        match self {
            Endpoint::Tcp { host, .. } => host,
            Endpoint::Unix(_) => "localhost",
        }
    }
}

impl Target {
    /// Returns `host:port`, an IPv6 address in brackets; for a Unix socket `localhost`.
    pub fn authority(&self) -> String {
        match &self.endpoint {
            Endpoint::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Endpoint::Tcp { host, port } => format!("{host}:{port}"),
            Endpoint::Unix(_) => self.endpoint.host().to_owned(),
        }
    }

    /// Returns the server's name for messages: `http://host:port/prefix`, over gRPC `grpc://host:port`, or `unix:PATH`.
    pub fn url(&self) -> String {
        if let Endpoint::Unix(path) = &self.endpoint {
            return format!("unix:{}", path.display());
        }
        let scheme = match (self.protocol, &self.tls) {
            (Protocol::Http, None) => "http",
            (Protocol::Http, Some(_)) => "https",
            (Protocol::Grpc, None) => "grpc",
            (Protocol::Grpc, Some(_)) => "grpcs",
        };
        let path = match self.protocol {
            Protocol::Http => self.base_path.as_str(),
            Protocol::Grpc => "",
        };
        format!("{scheme}://{}{path}", self.authority())
    }
}

/// Reads `Name:Value` and drops blanks around both; `None`: it is not a header.
pub fn read_header(text: &str) -> Option<(String, String)> {
    // Characters of a token: RFC 9110, 5.6.2.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let (name, value) = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()))?;
    let is_name = !name.is_empty() && name.chars().all(is_token);
    let fits = is_name && !value.chars().any(char::is_control);
    fits.then(|| (name.to_owned(), value.to_owned()))
}
