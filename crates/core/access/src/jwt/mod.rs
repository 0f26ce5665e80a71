//! Tokens: signed statements of an issuer about who somebody is (JWT, RFC 7519).
//!
//! Which algorithm a token is checked by is decided by the key, never by the token: a key is of one algorithm, and a token
//! that names another one is refused before anything is computed.

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

/// How a token may be signed.
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
    /// As the standard calls it.
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

/// Where the keys of an issuer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file, as the policy names it.
    File(String),
    /// An address, and how often it is asked.
    Url {
        /// https, or http on this machine.
        url: String,
        /// Between two fetches.
        refresh_secs: u64,
    },
}

/// What a policy says of tokens.
#[derive(Clone, Debug)]
pub struct JwtRules {
    /// Who makes them.
    pub issuer: String,
    /// For whom they are: any of these.
    pub audience: Vec<String>,
    /// The keys that sign them.
    pub keys: KeySource,
    /// How they may be signed.
    pub algorithms: Vec<SigningAlgorithm>,
    /// How far clocks may differ, in seconds.
    pub leeway: u64,
    /// Which claim says who it is.
    pub identity_claim: String,
    /// Which claim names roles or groups.
    pub roles_claim: Option<String>,
    /// For which models roles of that claim hold.
    pub(crate) models: Arc<[Pattern]>,
}
