//! Digests in hexadecimal digits.

/// Returns the digits, in lower case.
pub fn encoded(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of a digest of this length.
pub fn decoded<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    if digits.len() != 2 * LENGTH || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
