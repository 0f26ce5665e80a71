//! How much of a list or a name in a request is taken. Each element of a list takes more memory than text, so a text
//! of elements that no model has a use for is refused before it is built.

use std::{borrow::Cow, collections::HashSet};

use super::decode_error::{DecodeError, Result};

/// Inputs and outputs of a request beyond those that its model has: enough for the texts that tell a client which it
/// got wrong.
const SLACK: usize = 64;

/// Parameters of a request that the protocol gives no meaning.
pub(super) const MAX_PARAMETERS: usize = 1024;

/// Files that a load request brings.
pub(super) const MAX_FILES: usize = 4096;

/// Dimensions of a tensor.
pub(super) const MAX_RANK: usize = 1024;

/// Bytes of a request id, which stands in every message about the request.
const MAX_ID: usize = 64 << 10;

/// Bytes of a name; a longer one names nothing.
const MAX_NAME: usize = 4096;

/// So many names are compared with each other in less time than a set of them takes.
const FEW: usize = 16;

/// Counts the elements of a list as they come, and refuses one too many.
pub(super) struct Count<'m> {
    what: &'static str,
    model: &'m str,
    most: usize,
    left: usize,
}

impl<'m> Count<'m> {
    /// For a list of `what` (tensors) of a request to `model`, which has `known` of them.
    pub fn of_tensors(what: &'static str, known: usize, model: &'m str) -> Self {
        Self::new(what, known + SLACK, model)
    }

    /// For a list of at most `most` elements.
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

/// The first element whose name one before it has.
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

/// A request id as text.
pub(super) fn id(bytes: &[u8]) -> Result<String> {
    match bytes.len() <= MAX_ID {
        true => Ok(String::from_utf8_lossy(bytes).into_owned()),
        false => Err(DecodeError::LongId(MAX_ID)),
    }
}

/// A name as text. Of one that is too long for a name only the beginning is left, which names nothing.
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
    fn names_are_whole_up_to_a_length() {
        assert_eq!(name(b"INPUT0"), "INPUT0");
        assert_eq!(name(&[b'a'; MAX_NAME]).len(), MAX_NAME);
        assert_eq!(name(b"a\xffb"), "a\u{fffd}b");
        let long = name(&[b'a'; MAX_NAME + 1]);
        assert!(long.ends_with("aaa... (4097 bytes)"), "{long}");
    }

    #[test]
    fn the_first_name_that_comes_again_is_found_among_few_and_many() {
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
