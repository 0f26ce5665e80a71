//! An amount of memory as typed: bytes, with a unit, or a share of the available memory.

/// An amount of memory as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySize {
    /// A number of bytes.
    Bytes(usize),
    /// Percent of the available memory, 1 to 100.
    Percent(usize),
}

impl Default for MemorySize {
    fn default() -> Self {
        Self::Percent(50)
    }
}

/// Letters after a number, and the number of bits by which they shift it.
const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];

impl MemorySize {
    /// Reads `1073741824`, `512M`, `4GiB`, `50%`; not zero, which would refuse every request.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).filter(|percent| *percent <= 100).map(Self::Percent);
        }
        let text = text.to_ascii_lowercase();
        let text = text.strip_suffix("ib").or(text.strip_suffix('b')).unwrap_or(&text);
        let unit = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(*unit)?, *shift)));
        let (digits, shift) = unit.unwrap_or((text, 0));
        number(digits)?.checked_mul(1 << shift).map(Self::Bytes)
    }

    /// Returns the amount in bytes, given the `available` ones.
    pub fn of(self, available: usize) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            // Divided first, so that the product cannot overflow; the loss is under 100 bytes.
            Self::Percent(percent) => (available / 100).saturating_mul(percent),
        }
    }
}

/// Reads digits, not all of them 0. `parse` would accept a sign.
fn number(digits: &str) -> Option<usize> {
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_as_bytes_units_and_shares() {
        for (text, expected) in [
            ("1", MemorySize::Bytes(1)),
            ("1073741824", MemorySize::Bytes(1 << 30)),
            ("100B", MemorySize::Bytes(100)),
            ("16k", MemorySize::Bytes(16 << 10)),
            ("512M", MemorySize::Bytes(512 << 20)),
            ("512mb", MemorySize::Bytes(512 << 20)),
            ("4GiB", MemorySize::Bytes(4 << 30)),
            ("1t", MemorySize::Bytes(1 << 40)),
            ("50%", MemorySize::Percent(50)),
            ("100%", MemorySize::Percent(100)),
        ] {
            assert_eq!(MemorySize::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in
            ["", "0", "0%", "101%", "-1", "+1", "1.5G", "G", "%", "iB", "1 G", "1x", "99999999T"]
        {
            assert_eq!(MemorySize::parse(text), None, "{text}");
        }
        let beyond = format!("{}0", usize::MAX);
        assert_eq!(MemorySize::parse(&beyond), None);
    }

    #[test]
    fn a_share_is_relative_to_the_available_memory() {
        assert_eq!(MemorySize::Percent(50).of(1000), 500);
        assert_eq!(MemorySize::Percent(100).of(usize::MAX), usize::MAX / 100 * 100);
        assert_eq!(MemorySize::Bytes(7).of(1000), 7);
    }
}
