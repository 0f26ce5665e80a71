//! Tokens: signed statements of an issuer about an identity (JWT, RFC 7519).
//!
//! The key decides the algorithm of the check, never the token. A key has one algorithm, and a token that names another one is
//! refused before anything is computed.

mod cache;
mod key_set;
mod ring_provider;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

use std::sync::Arc;

pub(crate) use self::cache::Cache;
pub use self::key_set::{KeySet, KeySetError, MAX_KEY_SET};
use crate::pattern::Pattern;

/// The algorithm of a token's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// The elliptic curve secp256r1 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

galatea_types::names! {
    /// The name in the standard.
    pub SigningAlgorithm::name {
        Rs256 = "RS256", Es256 = "ES256", EdDsa = "EdDSA",
    }
}

impl SigningAlgorithm {
    fn library(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

/// The source of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file; the policy has its name.
    File(String),
    /// An address that is fetched repeatedly.
    Url {
        /// The address: https, or http on this machine.
        url: String,
        /// Seconds between two fetches.
        refresh_secs: u64,
    },
}

/// The rules of a policy for tokens.
#[derive(Clone, Debug)]
pub struct JwtRules {
    /// The issuer of the tokens.
    pub issuer: String,
    /// The accepted audiences: a token must name one of them.
    pub audience: Vec<String>,
    /// The source of the issuer's keys.
    pub keys: KeySource,
    /// The accepted algorithms.
    pub algorithms: Vec<SigningAlgorithm>,
    /// The allowed difference between clocks, in seconds.
    pub leeway: u64,
    /// The claim with the identity.
    pub identity_claim: String,
    /// The claim with roles or groups.
    pub roles_claim: Option<String>,
    /// The models for which the roles of that claim hold.
    pub(crate) models: Arc<[Pattern]>,
}
