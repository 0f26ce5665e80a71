//! Numbers as clients write them in settings: digits after blanks and a sign; text behind the digits counts for nothing.

/// The reason why a text is no number of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadNumber {
    /// It does not begin with a number.
    NotANumber,
    /// It does not fit 32 bits.
    OutOfRange,
}

/// Reads a number as the C library does.
pub(crate) fn read(text: &str) -> Result<i32, BadNumber> {
    let blanks = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
    let text = text.trim_start_matches(blanks);
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return Err(BadNumber::NotANumber);
    }
    let size = digits[..end].parse::<i64>().map_err(|_| BadNumber::OutOfRange)?;
    i32::try_from(if is_negative { -size } else { size }).map_err(|_| BadNumber::OutOfRange)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_behind_the_digits_counts_for_nothing() {
        for (text, number) in
            [("12x", 12), (" 5", 5), ("3.7", 3), ("+7", 7), ("-1", -1), ("\t0", 0)]
        {
            assert_eq!(read(text), Ok(number), "{text}");
        }
        for text in ["", "abc", "-", "x1", "+ 1", " "] {
            assert_eq!(read(text), Err(BadNumber::NotANumber), "{text}");
        }
        for text in ["2147483648", "-2147483649", "99999999999999999999999"] {
            assert_eq!(read(text), Err(BadNumber::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_it_is_shown(number: i32, behind in "[a-z. ]*") {
            prop_assert_eq!(read(&format!("{number}{behind}")), Ok(number));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = read(&text);
        }
    }
}
