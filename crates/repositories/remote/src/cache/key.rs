//! The key of an entry in the cache.

use sha2::{Digest, Sha256};

use crate::hex;

/// Characters of the name in a key, enough to recognise it.
const SHOWN: usize = 48;

/// The name of the folder in an entry, and a digest of everything that determines its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    text: String,
    name: String,
}

impl CacheKey {
    /// Makes a key. `name` is one part of a path. `parts` are everything that determines the content.
    pub fn of<'a>(name: &'a str, parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Sha256::new();
        for part in [name].into_iter().chain(parts) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let mut text: String = name.chars().take(SHOWN).map(plain).collect();
        text.push('-');
        text.push_str(&hex::encoded(&digest.finalize()[..16]));
        Self { text, name: name.to_owned() }
    }

    /// Returns the key as a file name.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name of the folder in the entry.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_its_boundary_changes_the_key() {
        let key = |name, parts: &[&str]| CacheKey::of(name, parts.iter().copied());
        let base = key("m", &["ab", "c"]);
        assert_eq!(base, key("m", &["ab", "c"]));
        for other in [key("m", &["a", "bc"]), key("n", &["ab", "c"]), key("m", &["ab", "c", ""])] {
            assert_ne!(base.as_str(), other.as_str());
        }
        let odd = key("ä/ b", &[]);
        assert!(odd.as_str().starts_with("___b-"), "{odd:?}");
        assert!(!odd.as_str().contains('/') && odd.name() == "ä/ b");
    }
}
