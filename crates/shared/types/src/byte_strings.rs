//! Reads and writes the elements of [`DataType::Bytes`](crate::DataType::Bytes) tensors. Each element is a little-endian `u32`
//! length and that many bytes, one after another, without padding.

use crate::{AlignedBlock, Buffer};

const LENGTH_SIZE: usize = size_of::<u32>();

/// Returns the bytes that an element takes in a tensor, with its length.
pub fn packed_len(element: &[u8]) -> usize {
    LENGTH_SIZE + element.len()
}

/// The error of an element that is longer than a `u32` can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a BYTES element of {length} bytes is longer than its length indicator can say")]
pub struct TooLong {
    /// Length of the element, in bytes.
    pub length: usize,
}

/// Appends one element to the data of a tensor.
///
/// # Errors
/// [`TooLong`]; nothing is appended then.
pub fn push(data: &mut impl for<'a> Extend<&'a u8>, element: &[u8]) -> Result<(), TooLong> {
    let length = u32::try_from(element.len()).map_err(|_| TooLong { length: element.len() })?;
    data.extend(&length.to_le_bytes());
    data.extend(element);
    Ok(())
}

/// Returns all elements as the data of a tensor.
///
/// # Errors
/// [`TooLong`] for the first element that is too long.
pub fn pack<T: AsRef<[u8]>>(elements: &[T]) -> Result<Buffer, TooLong> {
    let total = elements.iter().map(|e| packed_len(e.as_ref())).sum();
    let mut block = AlignedBlock::with_capacity(total);
    elements.iter().try_for_each(|e| push(&mut block, e.as_ref()))?;
    Ok(block.freeze())
}

/// The error of data that ends in the middle of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Truncated {
    /// The data ends within the length indicator.
    #[error("a length indicator of 4 bytes has only {available}")]
    Length {
        /// Bytes that are left for the indicator.
        available: usize,
    },
    /// The data ends within the bytes of the element.
    #[error("an element of {length} bytes has only {available}")]
    Element {
        /// The value of the indicator, in bytes.
        length: usize,
        /// Bytes that are left behind it.
        available: usize,
    },
}

/// Returns the elements in `data`, in order. Truncated data ends with one error.
pub fn elements(data: &[u8]) -> Elements<'_> {
    Elements { rest: data }
}

/// An iterator over elements; see [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Returns the data behind the elements taken so far.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = split_first(std::mem::take(&mut self.rest));
        Some(first.map(|(element, rest)| {
            self.rest = rest;
            element
        }))
    }
}

/// Returns the number of elements in `data`.
///
/// # Errors
/// [`Truncated`] when the data ends within an element.
pub fn count(data: &[u8]) -> Result<usize, Truncated> {
    elements(data).try_fold(0, |count, element| element.map(|_| count + 1))
}

/// Returns the bytes that the first `count` elements of `data` take; `None` when there are fewer.
pub fn size_of_first(data: &[u8], count: usize) -> Option<usize> {
    let mut elements = elements(data);
    for _ in 0..count {
        elements.next()?.ok()?;
    }
    Some(data.len() - elements.rest().len())
}

fn split_first(data: &[u8]) -> Result<(&[u8], &[u8]), Truncated> {
    let (length, rest) = data
        .split_first_chunk::<LENGTH_SIZE>()
        .ok_or(Truncated::Length { available: data.len() })?;
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or(Truncated::Element { length, available: rest.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_round_trip() {
        let words: [&[u8]; 3] = [b"cat", b"", &[0xff, 0]];
        let data = pack(&words).expect("short words");
        let data = data.host().expect("host memory");
        let mut pushed = Vec::new();
        words.iter().for_each(|word| push(&mut pushed, word).expect("short"));
        assert_eq!(&pushed[..7], b"\x03\0\0\0cat");
        assert_eq!(data, pushed);
        let back: Result<Vec<_>, _> = elements(data).collect();
        assert_eq!(back.expect("whole"), words);
        assert_eq!(count(data), Ok(3));
        assert_eq!(size_of_first(data, 2), Some(7 + 4));
        assert_eq!(size_of_first(data, 4), None);
    }

    #[test]
    fn truncated_data_is_reported_once_with_the_missing_bytes() {
        let element = |length, available| Truncated::Element { length, available };
        for (cut, expected) in [
            (&b"\x03\0\0"[..], Truncated::Length { available: 3 }),
            (b"\x03\0\0\0ca", element(3, 2)),
            (b"\xff\xff\xff\xff", element(u32::MAX as usize, 0)),
        ] {
            assert_eq!(elements(cut).collect::<Vec<_>>(), [Err(expected)]);
            assert_eq!(count(cut), Err(expected));
        }
    }
}
