//! The public keys of an issuer (JWKS, RFC 7517).

use std::fmt;

use jsonwebtoken::{
    DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};
use serde_json::Value;

use super::SigningAlgorithm;

/// Longest text of a key set, in bytes.
pub const MAX_KEY_SET: usize = 256 << 10;
/// Most keys in a key set.
const MAX_KEYS: usize = 256;

/// The keys that check tokens.
#[derive(Default)]
pub struct KeySet {
    keys: Vec<SigningKey>,
}

pub(super) struct SigningKey {
    id: Option<String>,
    pub algorithm: SigningAlgorithm,
    pub key: DecodingKey,
}

/// The reason why a text is no key set.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// It is too long.
    #[error("it is longer than {MAX_KEY_SET} bytes")]
    TooLong,
    /// It is no JSON, or has another form.
    #[error("it is not JSON of the form {{\"keys\": [...]}}: {0}")]
    Malformed(String),
    /// It has too many keys.
    #[error("it has {0} keys, and the limit is {MAX_KEYS}")]
    TooMany(usize),
    /// It has no usable key.
    #[error(
        "none of its {0} keys can check signatures by RS256 (2048 to 8192 bits), ES256 or EdDSA (Ed25519)"
    )]
    NoUsableKey(usize),
}

impl KeySet {
    /// Reads a key set. It leaves out keys of other kinds and for other uses.
    pub fn parse(text: &[u8]) -> Result<Self, KeySetError> {
        if text.len() > MAX_KEY_SET {
            return Err(KeySetError::TooLong);
        }
        let document: Value =
            serde_json::from_slice(text).map_err(|e| KeySetError::Malformed(e.to_string()))?;
        let Some(Value::Array(all)) = document.get("keys") else {
            return Err(KeySetError::Malformed("it has no list 'keys'".to_owned()));
        };
        if all.len() > MAX_KEYS {
            return Err(KeySetError::TooMany(all.len()));
        }
        let keys: Vec<_> = all.iter().filter_map(SigningKey::read).collect();
        if keys.is_empty() {
            return Err(KeySetError::NoUsableKey(all.len()));
        }
        Ok(Self { keys })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no keys: then no token can be checked.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the key that a token names. A token that names no key means the only key of its algorithm.
    pub(super) fn find(
        &self,
        id: Option<&str>,
        algorithm: SigningAlgorithm,
    ) -> Option<&SigningKey> {
        let mut of_algorithm = self.keys.iter().filter(|key| key.algorithm == algorithm);
        match id {
            Some(id) => of_algorithm.find(|key| key.id.as_deref() == Some(id)),
            None => of_algorithm.next().filter(|_| of_algorithm.next().is_none()),
        }
    }

    /// Returns whether it has a key of this name, of any algorithm.
    pub(super) fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }
}

impl SigningKey {
    fn read(value: &Value) -> Option<Self> {
        let key: Jwk = serde_json::from_value(value.clone()).ok()?;
        if !matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let algorithm = algorithm_of(&key)?;
        let id = key.common.key_id.clone();
        let key = DecodingKey::from_jwk(&key).ok()?;
        Some(Self { id, algorithm, key })
    }
}

/// Returns the algorithm of a key. If the key names one, it must be the same.
fn algorithm_of(key: &Jwk) -> Option<SigningAlgorithm> {
    let (algorithm, named) = match &key.algorithm {
        AlgorithmParameters::RSA(_) => (SigningAlgorithm::Rs256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (SigningAlgorithm::Es256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (SigningAlgorithm::EdDsa, KeyAlgorithm::EdDSA)
        }
        _ => return None,
    };
    key.common.key_algorithm.as_ref().is_none_or(|given| *given == named).then_some(algorithm)
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| (&key.id, key.algorithm))).finish()
    }
}
