//! The wire form of string tensors: each element a little-endian `u32` length and that many bytes.

/// Appends the elements of `data` to `texts`; `None` when it ends within one.
pub(crate) fn split<'d>(mut data: &'d [u8], texts: &mut Vec<&'d [u8]>) -> Option<()> {
    while !data.is_empty() {
        let (text, rest) = split_first(data)?;
        texts.push(text);
        data = rest;
    }
    Some(())
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
