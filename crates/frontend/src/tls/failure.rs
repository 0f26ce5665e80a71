//! What is said of a handshake that failed: whose fault it is, and what to do.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// A reason for the log; `None` where a client merely went away, as probes of load balancers do.
pub fn reason(error: &io::Error) -> Option<String> {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let Some(cause) = cause else {
        let went_away = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
        );
        return (!went_away).then(|| error.to_string());
    };
    Some(match cause {
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        ) => format!(
            "the client does not trust the server's certificate ({cause}): give it the authority's"
        ),
        Error::NoCertificatesPresented => {
            "the client showed no certificate, and this port asks for one".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the client's certificate is of an authority that is not among the trusted ones"
                .to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the client's certificate has expired".to_owned(),
        Error::InvalidCertificate(reason) => {
            format!("the client's certificate is refused: {reason:?}")
        }
        Error::PeerIncompatible(reason) => {
            format!(
                "the client speaks no TLS that is safe today ({reason:?}): TLS 1.2 or 1.3 is needed"
            )
        }
        Error::NoApplicationProtocol => {
            "the client asks for another protocol (ALPN) than this port speaks".to_owned()
        }
        other => other.to_string(),
    })
}
