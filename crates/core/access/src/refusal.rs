//! The reasons for which a client may not do an action.

use std::sync::Arc;

use galatea_types::{Error, Identity};

use crate::{action::Action, grantee::Grantee};

/// The reason why a client could not prove its identity. No message repeats what the client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// The client sent nothing.
    Missing,
    /// The credential has the wrong form.
    Malformed,
    /// The key is unknown.
    UnknownKey,
    /// The policy does not know the certificate of the connection.
    UnknownCertificate,
    /// The key or token has expired.
    Expired,
    /// The token is not signed by a key of its issuer, is for another audience, or is invalid in another way.
    InvalidToken(&'static str),
    /// The key that signed the token is not known, or not yet.
    UnknownSigningKey,
}

impl AuthFailure {
    /// Every reason that the metrics tell apart; `denied` is the one for known clients.
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

    /// Returns the name in the metrics.
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

/// The name in the metrics for a refusal of a known client.
pub const DENIED: &str = "denied";

/// The reason why a client may not do an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The client has not proved its identity: 401, UNAUTHENTICATED.
    #[error("{}", .0.text())]
    Unauthenticated(AuthFailure),
    /// The client lacks the role: 403, PERMISSION_DENIED.
    #[error("identity '{identity}' lacks the role '{role}' for {scope}")]
    Denied {
        /// The client's identity.
        identity: Arc<Identity>,
        /// The role that it lacks.
        role: &'static str,
        /// The models for which it lacks the role.
        scope: String,
    },
    /// Nobody has the role: 403, PERMISSION_DENIED.
    #[error(
        "no client of this server has the role '{role}' for {scope}; grant it in a policy (--auth-policy)"
    )]
    Closed {
        /// The role that the action needs.
        role: &'static str,
        /// The models for which the role is needed.
        scope: String,
    },
}

impl AccessError {
    /// Makes the error for a grantee that may not do this action.
    pub(crate) fn denied(grantee: &Grantee, action: &Action<'_>) -> Self {
        let (role, scope) = (action.role().map_or("read", |role| role.name()), action.scope());
        match grantee.is_anybody() {
            true => Self::Closed { role, scope },
            false => Self::Denied { identity: grantee.identity().clone(), role, scope },
        }
    }

    /// Returns the access error that an error came from.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }

    /// Returns the client's identity, if it is known.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Unauthenticated(_) | Self::Closed { .. } => None,
            Self::Denied { identity, .. } => Some(identity),
        }
    }

    /// Returns the name in the metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unauthenticated(failure) => failure.reason(),
            Self::Denied { .. } | Self::Closed { .. } => DENIED,
        }
    }
}

/// Error codes have no code for this. The code that answers finds it in the error's source with [`AccessError::of`].
impl From<AccessError> for Error {
    fn from(error: AccessError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_auth_failure_has_a_metric_reason() {
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
