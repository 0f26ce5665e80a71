//! Why a client may not do what it asks for.

use std::sync::Arc;

use galatea_types::{Error, Identity};

use crate::{action::Action, grantee::Grantee};

/// Why a client could not prove who it is. No text has anything of what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// It sent nothing.
    Missing,
    /// What it sent has not the form of a credential.
    Malformed,
    /// No key is the one that it sent.
    UnknownKey,
    /// The certificate of its connection is none that the policy knows.
    UnknownCertificate,
    /// Key or token have run out.
    Expired,
    /// The token is not signed by a key of its issuer, is for others, or is no good in another way.
    InvalidToken(&'static str),
    /// The key that signed the token is not known, or not yet.
    UnknownSigningKey,
}

impl AuthFailure {
    /// Every reason that the metrics tell apart; with `denied`, that of clients that are known.
    pub const REASONS: [&str; 8] = [
        "missing",
        "malformed",
        "unknown_key",
        "unknown_certificate",
        "expired",
        "invalid_token",
        "unknown_signing_key",
        DENIED,
    ];

    /// What the metrics call it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::UnknownCertificate => "unknown_certificate",
            Self::Expired => "expired",
            Self::InvalidToken(_) => "invalid_token",
            Self::UnknownSigningKey => "unknown_signing_key",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Missing => {
                "authentication is required: send an API key or a token as 'Authorization: Bearer ...', or a key as 'X-API-Key'"
            }
            Self::Malformed => {
                "the credential could not be read: one 'Authorization: Bearer ...' or one 'X-API-Key' is expected"
            }
            Self::UnknownKey => "the API key is not known to this server",
            Self::UnknownCertificate => {
                "the subject of the client's certificate is not known to this server, and no other credential was sent"
            }
            Self::Expired => "the credential has expired: get a new one",
            Self::InvalidToken(why) => why,
            Self::UnknownSigningKey => {
                "the key that signed the token is not known to this server; try again in a moment if it is new"
            }
        }
    }
}

/// What the metrics call a refusal of a client that is known.
pub const DENIED: &str = "denied";

/// Why a client may not do what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// It has not proved who it is: 401, UNAUTHENTICATED.
    #[error("{}", .0.text())]
    Unauthenticated(AuthFailure),
    /// It may not: 403, PERMISSION_DENIED.
    #[error("identity '{identity}' lacks the role '{role}' for {scope}")]
    Denied {
        /// Who it is.
        identity: Arc<Identity>,
        /// What it lacks.
        role: &'static str,
        /// For what.
        scope: String,
    },
    /// Nobody may: 403, PERMISSION_DENIED.
    #[error(
        "no client of this server has the role '{role}' for {scope}; started with --auth-policy, it gives it to those who \
         should have it"
    )]
    Closed {
        /// What it takes.
        role: &'static str,
        /// For what.
        scope: String,
    },
}

impl AccessError {
    /// The grantee may not do that.
    pub(crate) fn denied(grantee: &Grantee, action: &Action<'_>) -> Self {
        let (role, scope) = (action.role().map_or("read", |role| role.name()), action.scope());
        match grantee.is_anybody() {
            true => Self::Closed { role, scope },
            false => Self::Denied { identity: grantee.identity().clone(), role, scope },
        }
    }

    /// The one that an error came from.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }

    /// Who it is, where that is known.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Unauthenticated(_) | Self::Closed { .. } => None,
            Self::Denied { identity, .. } => Some(identity),
        }
    }

    /// What the metrics call it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unauthenticated(failure) => failure.reason(),
            Self::Denied { .. } | Self::Closed { .. } => DENIED,
        }
    }
}

/// The codes of errors know nothing of this: what answers looks for it in the source of the error, with
/// [`AccessError::of`].
impl From<AccessError> for Error {
    fn from(error: AccessError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_reason_of_the_metrics() {
        use AuthFailure::{
            Expired, InvalidToken, Malformed, Missing, UnknownCertificate, UnknownKey,
            UnknownSigningKey,
        };
        let all = [Missing, Malformed, UnknownKey, UnknownCertificate, Expired];
        for failure in all.into_iter().chain([InvalidToken("x"), UnknownSigningKey]) {
            assert!(AuthFailure::REASONS.contains(&failure.reason()));
            assert!(!AccessError::Unauthenticated(failure).to_string().is_empty());
        }
    }
}
