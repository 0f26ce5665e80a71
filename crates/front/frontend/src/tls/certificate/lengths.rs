//! Checks that the lengths in DER (X.690) match the data.
//!
//! The library that reads certificates allocates memory for a value by its length before it checks that so many bytes
//! follow. Some fifty bytes would make it allocate 250 MB.

/// The deepest nesting that is accepted; a certificate needs less than half of it.
const MOST_DEPTH: usize = 32;
/// The bit of a tag whose value consists of further elements.
const CONSTRUCTED: u8 = 0x20;

/// # Errors
/// When an element is longer than the element around it, or too deeply nested.
pub(super) fn check(der: &[u8]) -> Result<(), String> {
    check_elements(der, MOST_DEPTH)
}

fn check_elements(mut der: &[u8], depth: usize) -> Result<(), String> {
    let too_deep = || "its elements are nested too deeply".to_owned();
    let left = depth.checked_sub(1).ok_or_else(too_deep)?;
    while let Some((&tag, rest)) = der.split_first() {
        let (value, behind) =
            split_value(rest).ok_or("an element is longer than what it lies in")?;
        if tag & CONSTRUCTED != 0 {
            check_elements(value, left)?;
        }
        der = behind;
    }
    Ok(())
}

/// Returns the value after a tag, and the bytes that follow it.
fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONG: u8 = 0x80;
    let (&first, rest) = bytes.split_first()?;
    if first < LONG {
        return rest.split_at_checked(first.into());
    }
    let (digits, rest) = rest.split_at_checked((first & !LONG).into())?;
    if digits.is_empty() {
        // An indefinite length is valid in BER, never in DER.
        return None;
    }
    let length = digits
        .iter()
        .try_fold(0_usize, |length, &digit| length.checked_mul(256)?.checked_add(digit.into()))?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_may_not_exceed_their_container() {
        // SEQUENCE { SET { INTEGER 5 } }, the same with a length in two bytes, and nothing.
        for good in [&[0x30, 5, 0x31, 3, 2, 1, 5][..], &[0x30, 0x82, 0, 3, 2, 1, 5], &[]] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in [
            &[0x30, 4, 2, 0x83, 0x72, 0, 0][..],
            &[0x30, 3, 2, 2, 5],
            &[0x30, 2, 2, 1, 5],
            &[0x30],
            &[0x30, 0x80],
            &[0x02, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        let deep = (0..100).fold(Vec::new(), |inner: Vec<u8>, _| {
            [&[0x30, 0x82][..], &(inner.len() as u16).to_be_bytes(), &inner].concat()
        });
        assert!(check(&deep).expect_err("too deep").contains("nested"));
    }
}
