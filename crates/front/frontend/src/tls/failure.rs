//! The reason of a failed handshake: whose fault it is, and what to do.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// The side at fault. Each kind has its own limited log line, so that none hides another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client does not use TLS.
    NoTls,
    /// The client does not trust the server.
    Server,
    /// The server does not trust the client.
    Client,
    /// Any other disagreement.
    Other,
}

pub const KINDS: usize = 4;

/// Returns a reason for the log. Returns `None` if the client merely disconnected, as probes of load balancers do.
pub fn reason(error: &io::Error) -> Option<(Kind, String)> {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(cause) => Some(reason_of(cause)),
        None => {
            let went_away = matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
            );
            (!went_away).then(|| (Kind::Other, error.to_string()))
        }
    }
}

fn reason_of(cause: &Error) -> (Kind, String) {
    match cause {
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => {
            let text = format!(
                "the client does not trust the server's certificate ({cause}): give it the authority's"
            );
            (Kind::Server, text)
        }
        Error::NoCertificatesPresented => (
            Kind::Client,
            "the client showed no certificate, and this port asks for one".to_owned(),
        ),
        Error::InvalidCertificate(reason) => (Kind::Client, certificate(reason)),
        Error::PeerIncompatible(reason) => (
            Kind::Other,
            format!(
                "the client offers no safe version of TLS ({reason:?}): TLS 1.2 or 1.3 is needed"
            ),
        ),
        Error::NoApplicationProtocol => (
            Kind::Other,
            "the client asks for another protocol (ALPN) than this port speaks".to_owned(),
        ),
        other => (Kind::Other, other.to_string()),
    }
}

fn certificate(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            "the client's certificate is from an authority that this server does not trust"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the client's certificate has expired".to_owned()
        }
        // The library has no variant for it.
        other if format!("{other:?}").contains("UnsupportedCertVersion") => {
            "the client's certificate is of version 1, which has no names or purposes and is not accepted: make one \
             of version 3 (openssl x509 -req with -extfile, or openssl 3.2 and later)"
                .to_owned()
        }
        other => format!("the client's certificate is refused: {other:?}"),
    }
}
