//! SHA-256 of credentials. The server stores and looks up keys by their digest. So the time of a look-up depends on the digest,
//! which nobody can choose, and not on the correct part of a guessed key.

use std::fmt;

use ring::digest::{SHA256, digest};

/// The SHA-256 of a credential.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of these bytes.
    pub fn of(credential: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, credential).as_ref());
        Self(bytes)
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: &u8| char::from(*digit).to_digit(16);
            let [high, low] = pair else { return None };
            *byte = u8::try_from(value(high)? << 4 | value(low)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns a number from its last byte, to spread digests over parts.
    pub(crate) fn low(&self) -> usize {
        usize::from(self.0[31])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha256_in_upper_or_lower_case() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(Digest::parse(&text.to_uppercase()), Some(Digest::of(b"abc")));
        for wrong in ["", "ba", &text[1..], &format!("{text}0"), &text.replace('b', "g")] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{:?}", Digest::of(b"abc")).contains("ba78"));
    }
}
