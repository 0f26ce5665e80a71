//! Where requests go, and how.

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
    /// As they are.
    #[default]
    None,
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
}

/// A KServe v2 server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The protocol of all calls.
    pub protocol: Protocol,
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// What stands before `/v2` in HTTP paths: empty, or `/prefix` without a slash at its end.
    pub base_path: String,
    /// Sent with every request: HTTP headers, gRPC metadata.
    pub headers: Vec<(String, String)>,
    /// `None`: plain text.
    pub tls: Option<Tls>,
    /// Of gRPC requests; HTTP requests are never compressed.
    pub compression: Compression,
}

/// What the TLS handshake uses. Without `roots` the system's certificate authorities are trusted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM certificates of the authorities to trust.
    pub roots: Option<PathBuf>,
    /// The client's own certificate, for mutual TLS.
    pub certificate_chain: Option<PathBuf>,
    /// PEM unless this is set.
    pub certificate_is_der: bool,
    /// The key of the client's certificate.
    pub private_key: Option<PathBuf>,
    /// PEM unless this is set.
    pub private_key_is_der: bool,
    /// Whether the server's certificate may be signed by any authority.
    pub skips_peer: bool,
    /// Whether it may lack the server's name.
    pub skips_host: bool,
}

impl Protocol {
    /// `HTTP` or `gRPC`, as messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        }
    }

    /// The port that Triton listens on by default.
    pub fn default_port(self) -> u16 {
        match self {
            Protocol::Http => 8000,
            Protocol::Grpc => 8001,
        }
    }
}

impl Target {
    /// `host:port`, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// What messages call the server: `http://host:port/prefix`, over gRPC `grpc://host:port`.
    pub fn url(&self) -> String {
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

/// Reads `Name:Value`, blanks around both dropped; `None`: it is no header.
pub fn read_header(text: &str) -> Option<(String, String)> {
    // RFC 9110, 5.6.2
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let (name, value) = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()))?;
    let is_name = !name.is_empty() && name.chars().all(is_token);
    let fits = is_name && !value.chars().any(char::is_control);
    fits.then(|| (name.to_owned(), value.to_owned()))
}
