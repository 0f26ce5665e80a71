//! The wire form of string tensors: each element a little-endian `u32` length and that many bytes.

/// Appends the elements of `data` to `texts`, up to one that is incomplete.
pub fn split<'d>(mut data: &'d [u8], texts: &mut Vec<&'d [u8]>) {
    while let Some((text, rest)) = split_first(data) {
        texts.push(text);
        data = rest;
    }
}

/// Appends `text` as an element. False, and nothing appended, when it is longer than a length can say.
pub fn append(text: &[u8], data: &mut Vec<u8>) -> bool {
    let Ok(length) = u32::try_from(text.len()) else { return false };
    data.extend_from_slice(&length.to_le_bytes());
    data.extend_from_slice(text);
    true
}

/// Number of elements; `None` when the data ends within one.
pub fn count(mut data: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !data.is_empty() {
        data = split_first(data)?.1;
        count += 1;
    }
    Some(count)
}

/// Bytes that the first `count` elements of `data` take.
pub fn size_of_first(data: &[u8], count: usize) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_there_and_back() {
        let mut data = Vec::new();
        let texts: [&[u8]; 3] = [b"one", b"", b"three"];
        assert!(texts.iter().all(|text| append(text, &mut data)));
        let mut found = Vec::new();
        split(&data, &mut found);
        assert_eq!(found, texts);
        assert_eq!(count(&data), Some(3));
        assert_eq!(size_of_first(&data, 2), Some(7 + 4));
        assert_eq!(count(&data[..data.len() - 1]), None);
        assert_eq!(size_of_first(&data, 4), None);
    }
}
