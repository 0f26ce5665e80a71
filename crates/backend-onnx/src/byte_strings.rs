//! The wire form of string tensors: each element a little-endian `u32` length and that many bytes.

/// Appends the elements of `data` to `texts`, up to one that is incomplete.
pub(crate) fn split<'d>(mut data: &'d [u8], texts: &mut Vec<&'d [u8]>) {
    while let Some((text, rest)) = split_first(data) {
        texts.push(text);
        data = rest;
    }
}

/// Number of elements; `None` when the data ends within one.
pub(crate) fn count(mut data: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !data.is_empty() {
        data = split_first(data)?.1;
        count += 1;
    }
    Some(count)
}

/// Bytes that the first `count` elements of `data` take.
pub(crate) fn size_of_first(data: &[u8], count: usize) -> Option<usize> {
    let mut rest = data;
    for _ in 0..count {
        rest = split_first(rest)?.1;
    }
    Some(data.len() - rest.len())
}

fn split_first(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}
