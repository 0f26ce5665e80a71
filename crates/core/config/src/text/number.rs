//! Reads numbers as Python does, because Python's rules define the accepted forms of the format.

/// Reads an integer literal: decimal, `0x`, `0o`, `0b` or C's leading-zero octal, with `_` between digits. `None` when it is none
/// of these. Saturates at the ends of `i128`, far outside any field's range.
pub(crate) fn parse_integer(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let is_plus = text.starts_with('+');
    let magnitude = parse_magnitude(digits, !is_plus)?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Reads an enum number: an integer without C's octal form.
pub(crate) fn parse_enum_number(text: &str) -> Option<i128> {
    let digits = text.trim_start_matches('-');
    let is_c_octal = digits.starts_with('0')
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.bytes().any(|b| b != b'0');
    if is_c_octal { None } else { parse_integer(text) }
}

fn parse_magnitude(digits: &str, allows_c_octal: bool) -> Option<i128> {
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    match prefix.as_deref() {
        Some("0x") => parse_digits(digits[2..].strip_prefix('_').unwrap_or(&digits[2..]), 16),
        Some("0o") => parse_digits(digits[2..].strip_prefix('_').unwrap_or(&digits[2..]), 8),
        Some("0b") => parse_digits(digits[2..].strip_prefix('_').unwrap_or(&digits[2..]), 2),
        Some(_) if digits.starts_with('0') => parse_leading_zero(digits, allows_c_octal),
        _ => parse_digits(digits, 10),
    }
}

/// Reads digits with a leading zero. `017` is octal in C's way; `0_0` is zero in Python's; other forms are refused.
fn parse_leading_zero(digits: &str, allows_c_octal: bool) -> Option<i128> {
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit());
    if is_plain && allows_c_octal {
        return parse_digits(&digits[1..], 8);
    }
    parse_digits(digits, 10).filter(|&value| value == 0)
}

fn parse_digits(digits: &str, radix: u32) -> Option<i128> {
    let mut value: i128 = 0;
    let mut follows_digit = false;
    for c in digits.chars() {
        match c.to_digit(radix) {
            Some(digit) => {
                value = value.saturating_mul(radix.into()).saturating_add(digit.into());
                follows_digit = true;
            }
            None if c == '_' && follows_digit => follows_digit = false,
            None => return None,
        }
    }
    follows_digit.then_some(value)
}

/// Reads a floating point literal: decimal or exponent form, `inf`, `nan`, each with an optional `f` after it. A leading zero
/// before another digit is refused.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if matches!(unsigned, [b'0', b'0'..=b'9', ..]) {
        return None;
    }
    let bare = text.trim_end_matches(['f', 'F']);
    parse_plain_float(text)
        .or_else(|| parse_plain_float(bare))
        .or_else(|| parse_infinity_with_suffix(text))
}

/// Reads `inff`, whose last `f` is a suffix: removing every `f` would leave `in`.
fn parse_infinity_with_suffix(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "inff" => Some(f64::INFINITY),
        "-inff" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn parse_plain_float(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let is_digit =
        |at: Option<usize>| at.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_digit);
    let separates_digits = bytes
        .iter()
        .enumerate()
        .filter(|&(_, &b)| b == b'_')
        .all(|(i, _)| is_digit(i.checked_sub(1)) && is_digit(Some(i + 1)));
    if separates_digits { text.replace('_', "").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed() {
        let cases = [
            ("0", Some(0)),
            ("00", Some(0)),
            ("12", Some(12)),
            ("-12", Some(-12)),
            ("+12", Some(12)),
            ("0x1F", Some(31)),
            ("-0X1f", Some(-31)),
            ("0x_1f", Some(31)),
            ("017", Some(15)),
            ("-017", Some(-15)),
            ("+017", None),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("08", None),
            ("1_000", Some(1000)),
            ("1__0", None),
            ("1_", None),
            ("_1", None),
            ("0_0", Some(0)),
            ("0_7", None),
            ("", None),
            ("-", None),
            ("+-1", None),
            ("1.0", None),
            ("1e3", None),
            ("0x", None),
            ("0xg", None),
            ("é", None),
            ("0é", None),
            ("+00", Some(0)),
            ("9999999999999999999999999999999999999999999999", Some(i128::MAX)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_integer(text), expected, "{text}");
        }
    }

    #[test]
    fn enum_numbers_are_parsed() {
        let cases = [
            ("2", Some(2)),
            ("0x2", Some(2)),
            ("02", None),
            ("00", Some(0)),
            ("-02", None),
            ("-1", Some(-1)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_enum_number(text), expected, "{text}");
        }
    }

    #[test]
    fn floats_are_parsed() {
        let inf = f64::INFINITY;
        let cases = [
            ("1", Some(1.0)),
            ("-1.5", Some(-1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("1e3", Some(1e3)),
            ("1.5f", Some(1.5)),
            ("1.5F", Some(1.5)),
            ("1fff", Some(1.0)),
            ("inf", Some(inf)),
            ("-inf", Some(-inf)),
            ("Infinity", Some(inf)),
            ("inff", Some(inf)),
            ("-inff", Some(-inf)),
            ("+inff", None),
            ("infff", None),
            ("infinityf", Some(inf)),
            ("+inf", Some(inf)),
            ("01", None),
            ("00.5", None),
            ("+01", Some(1.0)),
            ("0.5", Some(0.5)),
            ("1_0.5", Some(10.5)),
            ("1_.5", None),
            ("1e_5", None),
            ("f", None),
            ("", None),
            ("0x1", None),
            ("-", None),
            ("1e", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text), expected, "{text}");
        }
        for text in ["nan", "NaN", "-nan", "nanf", "-nanf"] {
            assert!(parse_float(text).is_some_and(f64::is_nan), "{text}");
        }
    }
}
