//! The beginning of a text, kept in place: copying it takes no memory of its own.

use std::fmt;

const LENGTH: usize = 95;

/// The beginning of a text: of a model's name or a request's id, for a line that is seldom written.
#[derive(Clone, Copy)]
pub(crate) struct Excerpt {
    bytes: [u8; LENGTH],
    length: u8,
}

impl Excerpt {
    pub const EMPTY: Self = Self { bytes: [0; LENGTH], length: 0 };

    pub fn of(text: &str) -> Self {
        let end = text.floor_char_boundary(LENGTH);
        let mut excerpt = Self::EMPTY;
        if let (Some(to), Some(from)) = (excerpt.bytes.get_mut(..end), text.as_bytes().get(..end)) {
            to.copy_from_slice(from);
            excerpt.length = u8::try_from(end).unwrap_or_default();
        }
        excerpt
    }

    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length.into()).unwrap_or_default();
        str::from_utf8(bytes).unwrap_or_default()
    }
}

impl Default for Excerpt {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_kept_whole_and_long_ones_cut_between_characters() {
        for text in ["", "simple", &"x".repeat(95)] {
            assert_eq!(Excerpt::of(text).as_str(), text);
        }
        assert_eq!(Excerpt::of(&"é".repeat(60)).as_str(), "é".repeat(47));
    }
}
