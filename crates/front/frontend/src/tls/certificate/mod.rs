//! The contents of a certificate: its subject, its issuer and its dates.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use x509_cert::{
    Certificate, Version,
    der::{DateTime, Decode, Encode},
    name::Name,
};

mod lengths;

/// The longest subject of a client, in bytes. It appears in log lines and is compared with rules at each request.
const MOST_SUBJECT: usize = 4096;

pub struct CertificateRequirement {
    pub subject: Box<str>,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    pub issuer_name: Vec<u8>,
    pub subject_name: Vec<u8>,
    /// The key in its standard form (DER of SubjectPublicKeyInfo).
    pub public_key: Vec<u8>,
    /// A version 1 certificate has no extensions: neither host names nor purposes.
    pub is_version_1: bool,
}

pub fn read(der: &[u8]) -> Result<CertificateRequirement, String> {
    let certificate = lengths::check(der)
        .and_then(|()| Certificate::from_der(der).map_err(|error| error.to_string()))
        .map_err(|error| format!("a certificate is malformed: {error}"))?;
    let fields = certificate.tbs_certificate;
    let subject = text(&fields.subject);
    if subject.len() > MOST_SUBJECT {
        return Err(format!("the subject of a certificate is longer than {MOST_SUBJECT} bytes"));
    }
    let name = |name: &Name| name.to_der().unwrap_or_default();
    Ok(CertificateRequirement {
        subject: subject.into(),
        not_before: fields.validity.not_before.to_system_time(),
        not_after: fields.validity.not_after.to_system_time(),
        issuer_name: name(&fields.issuer),
        subject_name: name(&fields.subject),
        public_key: fields.subject_public_key_info.to_der().unwrap_or_default(),
        is_version_1: fields.version == Version::V1,
    })
}

/// Returns the subject of a certificate (DER) in the form of RFC 4514. The error says why it has none.
pub fn describe(der: &[u8]) -> Result<Box<str>, String> {
    read(der).map(|described| described.subject)
}

/// Returns a distinguished name (DER) in the form of RFC 4514, on one line. The error says why it is invalid.
pub fn distinguished_name(der: &[u8]) -> Result<String, String> {
    let name = lengths::check(der)
        .and_then(|()| Name::from_der(der).map_err(|error| error.to_string()))
        .map_err(|error| format!("a name is malformed: {error}"))?;
    Ok(text(&name))
}

fn text(name: &Name) -> String {
    printable(&name.to_string())
}

/// Writes characters that would break a line, or reverse it on a screen, as `\XX`. RFC 4514 allows that for every byte.
fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        let is_hidden = c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if is_hidden {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(text, "\\{byte:02x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Formats a time in UTC for people.
pub fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let whole = Duration::from_secs(since.as_secs());
    DateTime::from_unix_duration(whole).map_or_else(|_| "never".to_owned(), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn subjects_are_escaped_to_one_unambiguous_line() {
        for (name, expected) in [
            ("CN=trainer,O=Acme\\, Inc.", "CN=trainer,O=Acme\\, Inc."),
            ("CN=a\\0aadmin", "CN=a\\0aadmin"),
            ("CN=a\u{202e}b", "CN=a\\e2\\80\\aeb"),
            ("CN=a\u{85}b", "CN=a\\c2\\85b"),
            ("CN=a+OU=b", "CN=a+OU=b"),
            ("CN=\\#a\\+OU=b", "CN=\\#a\\+OU=b"),
            ("CN=Zoë", "CN=Zoë"),
        ] {
            let parsed = Name::from_str(name).expect(name);
            assert_eq!(text(&parsed), expected, "{name}");
        }
    }

    #[test]
    fn files_that_are_not_certificates_are_refused() {
        for der in [&b""[..], b"x", b"\x30\x82\xff\xff", b"\x30\x80\x00\x00", &[0x30; 5000]] {
            assert!(read(der).is_err());
        }
    }

    #[test]
    fn dates_are_in_utc() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_790_000_000_500);
        assert_eq!(date(time), "2026-09-21T14:13:20Z");
    }
}
