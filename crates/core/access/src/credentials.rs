//! The credentials that clients send to prove their identity.

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::refusal::AuthFailure;

/// Longest key or token, in bytes.
const MAX_LENGTH: usize = 8 << 10;

/// The credentials of a request, as received.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The header `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The header `X-API-Key`.
    pub api_key: Option<&'a [u8]>,
    /// The subject of the client's certificate on this connection.
    pub certificate: Option<&'a str>,
    /// One of the headers was sent several times.
    pub are_repeated: bool,
}

/// The credential that counts. It is not checked yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SentCredential<'a> {
    /// A key or a token.
    Secret(std::borrow::Cow<'a, [u8]>),
    /// The client sent no secret: its certificate counts.
    Certificate(&'a str),
}

impl<'a> Credentials<'a> {
    /// Returns the credential that counts. A header comes first, so that a client with a wrong header gets an error.
    pub(crate) fn sent(&self) -> Result<SentCredential<'a>, AuthFailure> {
        if self.are_repeated {
            return Err(AuthFailure::Malformed);
        }
        let secret = match (self.authorization, self.api_key) {
            (Some(_), Some(_)) => return Err(AuthFailure::Malformed),
            (Some(authorization), None) => of_authorization(authorization)?,
            (None, Some(key)) => key.trim_ascii().into(),
            (None, None) => {
                return self
                    .certificate
                    .map(SentCredential::Certificate)
                    .ok_or(AuthFailure::Missing);
            }
        };
        if secret.is_empty() || secret.len() > MAX_LENGTH {
            return Err(AuthFailure::Malformed);
        }
        Ok(SentCredential::Secret(secret))
    }

    /// Returns whether browsers send these credentials by themselves, also in requests that another site's page makes.
    pub fn are_sent_by_browsers(&self) -> bool {
        match (self.authorization, self.api_key) {
            (Some(value), _) => behind_scheme(value, b"basic").is_some(),
            (None, Some(_)) => false,
            (None, None) => self.certificate.is_some(),
        }
    }
}

/// Reads the header `Authorization`. Keys are accepted as passwords too, because browsers ask for those.
fn of_authorization(value: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>, AuthFailure> {
    if let Some(secret) = behind_scheme(value, b"bearer") {
        return Ok(secret.into());
    }
    let encoded = behind_scheme(value, b"basic").ok_or(AuthFailure::Malformed)?;
    if encoded.len() > 2 * MAX_LENGTH {
        return Err(AuthFailure::Malformed);
    }
    let pair = BASE64_STANDARD.decode(encoded).map_err(|_| AuthFailure::Malformed)?;
    let colon = pair.iter().position(|&byte| byte == b':').ok_or(AuthFailure::Malformed)?;
    Ok(pair[colon + 1..].to_vec().into())
}

/// Returns the text behind the name of a scheme; case does not count.
fn behind_scheme<'a>(value: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let value = value.trim_ascii();
    let (name, rest) = value.split_at_checked(scheme.len())?;
    let is_it = name.eq_ignore_ascii_case(scheme) && rest.first() == Some(&b' ');
    is_it.then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_certificate_without_key_counts_as_a_browsers() {
        let credentials =
            |authorization: Option<&'static str>, api_key: Option<&'static str>| Credentials {
                authorization: authorization.map(str::as_bytes),
                api_key: api_key.map(str::as_bytes),
                certificate: Some("CN=a"),
                are_repeated: false,
            };
        assert!(credentials(None, None).are_sent_by_browsers());
        assert!(credentials(Some("Basic YTpi"), None).are_sent_by_browsers());
        assert!(!credentials(Some("Bearer k"), None).are_sent_by_browsers());
        assert!(!credentials(None, Some("k")).are_sent_by_browsers());
        assert!(!Credentials::default().are_sent_by_browsers());
    }

    fn sent(authorization: Option<&str>, api_key: Option<&str>) -> Result<String, AuthFailure> {
        let credentials = Credentials {
            authorization: authorization.map(str::as_bytes),
            api_key: api_key.map(str::as_bytes),
            certificate: Some("CN=a"),
            are_repeated: false,
        };
        Ok(match credentials.sent()? {
            SentCredential::Secret(secret) => String::from_utf8_lossy(&secret).into_owned(),
            SentCredential::Certificate(subject) => format!("certificate {subject}"),
        })
    }

    #[test]
    fn keys_are_accepted_in_either_header_and_as_passwords() {
        assert_eq!(sent(Some("Bearer k"), None), Ok("k".to_owned()));
        assert_eq!(sent(Some("bearer  k "), None), Ok("k".to_owned()));
        assert_eq!(sent(None, Some(" k")), Ok("k".to_owned()));
        assert_eq!(sent(Some("Basic dXNlcjprOnE="), None), Ok("k:q".to_owned()));
        assert_eq!(sent(None, None), Ok("certificate CN=a".to_owned()));
        assert_eq!(Credentials::default().sent(), Err(AuthFailure::Missing));
    }

    #[test]
    fn malformed_credentials_are_refused_instead_of_ignored() {
        let long = format!("Bearer {}", "x".repeat(MAX_LENGTH + 1));
        for wrong in
            ["", "Bearer", "Bearer ", "k", "Digest k", "Bearerk", "Basic !", "Basic eA==", &long]
        {
            assert_eq!(sent(Some(wrong), None), Err(AuthFailure::Malformed), "{wrong}");
        }
        assert_eq!(sent(None, Some("")), Err(AuthFailure::Malformed));
        assert_eq!(sent(Some("Bearer k"), Some("k")), Err(AuthFailure::Malformed));
        let repeated = Credentials { are_repeated: true, ..Credentials::default() };
        assert_eq!(repeated.sent(), Err(AuthFailure::Malformed));
    }
}
