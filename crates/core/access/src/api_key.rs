//! API keys that the program makes for clients.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::digest::Digest;

/// The prefix of every key, by which scanners recognise leaked secrets.
const PREFIX: &str = "galatea_";

/// A new key. The whole key exists only here.
pub struct ApiKey(String);

impl ApiKey {
    /// Makes a key from 32 random bytes.
    pub fn from_random(bytes: &[u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the text that its owner sends.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digest that the policy contains.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_fits_into_a_header_and_encodes_all_random_bytes() {
        let key = ApiKey::from_random(&[0xfb; 32]);
        assert_eq!(key.as_str().len(), PREFIX.len() + 43);
        assert!(key.as_str().bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
        assert_ne!(key.digest(), ApiKey::from_random(&[0xfa; 32]).digest());
    }
}
