//! Elements of a BYTES tensor: each is a little-endian `u32` length and that many bytes.

use galatea_types::{AlignedBlock, Buffer};

/// Bytes one packed element takes.
pub fn packed_len(element: &[u8]) -> usize {
    LENGTH_SIZE + element.len()
}

const LENGTH_SIZE: usize = size_of::<u32>();

/// Appends one element. `false`, and nothing appended, when it is longer than a `u32` can say.
pub fn push(block: &mut AlignedBlock, element: &[u8]) -> bool {
    let Ok(length) = u32::try_from(element.len()) else { return false };
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(element);
    true
}

/// All elements as the data of a BYTES tensor. `None` when one is longer than a `u32` can say.
pub fn pack<T: AsRef<[u8]>>(elements: &[T]) -> Option<Buffer> {
    let total = elements.iter().map(|e| packed_len(e.as_ref())).sum();
    let mut block = AlignedBlock::with_capacity(total);
    elements.iter().all(|e| push(&mut block, e.as_ref())).then(|| block.freeze())
}

/// The elements of packed data, in order. Where the data is cut short comes one error, then nothing.
pub fn elements(data: &[u8]) -> Elements<'_> {
    Elements { rest: data }
}

/// The packed data ends in the middle of a length or of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((element, rest)) = split_first(self.rest) else {
            self.rest = &[];
            return Some(Err(Truncated));
        };
        self.rest = rest;
        Some(Ok(element))
    }
}

fn split_first(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<LENGTH_SIZE>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_come_back() {
        let words: [&[u8]; 3] = [b"cat", b"", &[0xff, 0]];
        let data = pack(&words).expect("short words");
        assert_eq!(&data[..7], b"\x03\0\0\0cat");
        let back: Result<Vec<_>, _> = elements(&data).collect();
        assert_eq!(back.expect("whole"), words);
    }

    #[test]
    fn truncated_data_is_told_once() {
        for cut in [&b"\x03\0\0"[..], b"\x03\0\0\0ca", b"\xff\xff\xff\xff"] {
            let items: Vec<_> = elements(cut).collect();
            assert_eq!(items, [Err(Truncated)]);
        }
    }
}
