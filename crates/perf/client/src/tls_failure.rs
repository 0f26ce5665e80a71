//! Explanations of failed TLS handshakes, with advice.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// Advice for a server certificate that is not trusted.
const AUTHORITY: &str = "name a file with the authority that signed it (--cacert; of `galatea perf` \
                         --ssl-https-ca-certificates-file or --ssl-grpc-root-certifications-file)";
const OWN_CERTIFICATE: &str = "name one with --cert and --key (of `galatea perf` \
                               --ssl-https-client-certificate-file and --ssl-https-private-key-file, or \
                               --ssl-grpc-certificate-chain-file and --ssl-grpc-private-key-file)";

/// Returns the reason in plain words, without those of the library.
pub(crate) fn reason(cause: &io::Error) -> String {
    let known = cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match known {
        Some(error) => of_tls(error),
        None if cause.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection during the handshake; does this port speak TLS?"
                .to_owned()
        }
        None => format!("{cause}; does this port speak TLS?"),
    }
}

fn of_tls(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(reason) => certificate(reason),
        Error::InvalidMessage(_) => {
            "the answer is not TLS; does this port speak TLS, or is it http:// or grpc://?"
                .to_owned()
        }
        Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => format!("the server requires a certificate of this client; {OWN_CERTIFICATE}"),
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::UnsupportedCertificate,
        ) => {
            format!("the server does not accept the certificate of this client; {OWN_CERTIFICATE}")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | Error::NoApplicationProtocol => {
            "the server speaks another protocol on this port; is it that of HTTP, or of gRPC?"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) | Error::PeerIncompatible(_) => {
            "the server offers no safe version of TLS: 1.2 or 1.3 is needed".to_owned()
        }
        other => format!("{other}; does this port speak TLS, and are the certificates right?"),
    }
}

fn certificate(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            format!("the server's certificate is from an authority that is not trusted here; {AUTHORITY}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired, or the clock here is wrong; the server needs a new one".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet, or the clock here is wrong".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another host name; use a name that it has in the address".to_owned()
        }
        CertificateError::BadEncoding | CertificateError::BadSignature => {
            format!("the server's certificate is damaged, or signed by another key; {AUTHORITY}")
        }
        other => format!("the server's certificate cannot be used: {other}; {AUTHORITY}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: Error, expected: &str) {
        let text = reason(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert!(text.contains(expected), "{text}");
        for word in ["UnknownIssuer", "rustls", "AlertReceived", "webpki"] {
            assert!(!text.contains(word), "{text}");
        }
    }

    #[test]
    fn the_reason_includes_advice() {
        check(Error::InvalidCertificate(CertificateError::UnknownIssuer), "--cacert");
        check(Error::InvalidCertificate(CertificateError::Expired), "has expired");
        check(Error::InvalidCertificate(CertificateError::NotValidForName), "another host name");
        check(Error::AlertReceived(AlertDescription::CertificateRequired), "--cert and --key");
        check(Error::AlertReceived(AlertDescription::UnknownCA), "does not accept the certificate");
        check(Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "is not TLS");
        let closed = reason(&io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof"));
        assert!(closed.contains("does this port speak TLS?"), "{closed}");
    }
}
