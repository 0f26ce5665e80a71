//! Finds the first byte of a JSON string that is not plain.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH_BITS: u64 = ONES << 7;

/// Returns the number of plain bytes at the beginning of `text`: those before a quotation mark, a backslash or a
/// control character.
pub(super) fn plain_length(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&b: &u8| b == b'"' || b == b'\\' || b < 0x20;
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Returns the high bit of the first special byte, and perhaps of some after it; 0 if there is none. Subtracting n from
/// a byte below n borrows from the next one and sets its high bit. So all eight are compared at once.
fn special_bytes(word: u64) -> u64 {
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_value_is_classified_at_every_position() {
        for byte in 0..=u8::MAX {
            let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
            for fill in [b' ', b'#', b'a', 0x7f, 0x80, 0xff] {
                for length in 0..20 {
                    for at in 0..length {
                        let mut text = vec![fill; length];
                        text[at] = byte;
                        let expected = if is_special { at } else { length };
                        assert_eq!(plain_length(&text), expected, "{byte} at {at} of {text:?}");
                    }
                }
            }
        }
        assert_eq!(plain_length(b""), 0);
    }

    #[test]
    fn the_first_of_several_special_bytes_ends_the_text() {
        assert_eq!(plain_length(b"ab\"\\\x1f!\x20\"cdefgh"), 2);
        assert_eq!(plain_length(b"\x80\xff\x21\x23\x5b\x5d\x00\x01"), 6);
    }
}
