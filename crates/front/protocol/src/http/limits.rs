//! Limits on lists and names in a request. Each element of a list takes more memory than its text. A text with more
//! elements than any model can use is therefore refused before they are built.

use std::{borrow::Cow, collections::HashSet};

use super::decode_error::{DecodeError, Result};

/// The inputs and outputs of a request beyond those of its model: enough for the texts that tell a client which is
/// wrong.
const SLACK: usize = 64;

/// The most parameters of a request without a meaning in the protocol.
pub(super) const MAX_PARAMETERS: usize = 1024;

/// The most files in a load request.
pub(super) const MAX_FILES: usize = 4096;

/// The most dimensions of a tensor.
pub(super) const MAX_RANK: usize = 1024;

/// The longest request id in bytes, because every message about the request contains it.
const MAX_ID: usize = 64 << 10;

/// The longest name in bytes; a longer one names nothing.
const MAX_NAME: usize = 4096;

/// This many names are compared with each other faster than with a set.
const FEW: usize = 16;

/// Counts the elements of a list as they arrive, and refuses one too many.
pub(super) struct Count<'m> {
    what: &'static str,
    model: &'m str,
    most: usize,
    left: usize,
}

impl<'m> Count<'m> {
    /// Counts a list of `what` (tensors) in a request to `model`, which has `known` of them.
    pub fn of_tensors(what: &'static str, known: usize, model: &'m str) -> Self {
        Self::new(what, known + SLACK, model)
    }

    /// Counts a list of at most `most` elements.
    pub fn new(what: &'static str, most: usize, model: &'m str) -> Self {
        Self { what, model, most, left: most }
    }

    pub fn next(&mut self) -> Result<()> {
        let Self { what, model, most, left } = self;
        let error = || DecodeError::TooMany { what, most: *most, model: (*model).to_owned() };
        *left = left.checked_sub(1).ok_or_else(error)?;
        Ok(())
    }
}

/// Returns the first element that has the name of an earlier one.
pub(super) fn first_repeated<T>(elements: &[T], name: impl Fn(&T) -> &str) -> Option<&T> {
    if elements.len() <= FEW {
        let is_repeated = |(index, element): &(usize, &T)| {
            elements.iter().take(*index).any(|before| name(before) == name(element))
        };
        return elements.iter().enumerate().find(is_repeated).map(|(_, element)| element);
    }
    let mut seen = HashSet::with_capacity(elements.len());
    elements.iter().find(|element| !seen.insert(name(element)))
}

/// Returns a request id as text.
pub(super) fn id(bytes: &[u8]) -> Result<String> {
    match bytes.len() <= MAX_ID {
        true => Ok(String::from_utf8_lossy(bytes).into_owned()),
        false => Err(DecodeError::LongId(MAX_ID)),
    }
}

/// Returns a name as text. A name that is too long is truncated, and then names nothing.
pub(super) fn name(bytes: &[u8]) -> Cow<'_, str> {
    match bytes.get(..MAX_NAME) {
        Some(beginning) if bytes.len() > MAX_NAME => {
            let beginning = String::from_utf8_lossy(beginning);
            Cow::Owned(format!("{beginning}... ({} bytes)", bytes.len()))
        }
        _ => match std::str::from_utf8(bytes) {
            Ok(name) => Cow::Borrowed(name),
            Err(_) => String::from_utf8_lossy(bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_length_is_limited() {
        assert_eq!(name(b"INPUT0"), "INPUT0");
        assert_eq!(name(&[b'a'; MAX_NAME]).len(), MAX_NAME);
        assert_eq!(name(b"a\xffb"), "a\u{fffd}b");
        let long = name(&[b'a'; MAX_NAME + 1]);
        assert!(long.ends_with("aaa... (4097 bytes)"), "{long}");
    }

    #[test]
    fn the_first_repeated_name_is_found_in_short_and_long_lists() {
        for length in [0, 1, 2, FEW, FEW + 1, 100] {
            let names: Vec<String> = (0..length).map(|n| n.to_string()).collect();
            assert_eq!(first_repeated(&names, |name| name), None);
            for repeated in 1..length {
                let mut names = names.clone();
                names[repeated] = names[repeated / 2].clone();
                names.push("0".to_owned());
                let found = first_repeated(&names, |name| name).expect("a repeated one");
                assert!(std::ptr::eq(found, &raw const names[repeated]), "{repeated} of {length}");
            }
        }
    }
}
