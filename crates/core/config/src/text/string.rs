//! Escapes in quoted strings.
//!
//! Python protobuf reads them in three passes (pad one-digit hex escapes, decode `\u`, decode the rest), so a `\u005c` can start
//! another escape. This code keeps the passes apart for the same result.

/// Returns the bytes of a string literal without its quotes, or its mistake.
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, &'static str> {
    if !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    decode_bytes(&decode_unicode(&pad_hex(text))?)
}

/// Pads `\xf` to `\x0f`.
fn pad_hex(text: &str) -> String {
    let chars = text.chars().collect::<Vec<_>>();
    let is_hex = |at: usize| chars.get(at).is_some_and(char::is_ascii_hexdigit);
    let mut padded = String::with_capacity(text.len() + 8);
    let mut backslashes = 0;
    for (at, &c) in chars.iter().enumerate() {
        padded.push(c);
        if c == 'x' && backslashes % 2 == 1 && is_hex(at + 1) && !is_hex(at + 2) {
            padded.push('0');
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    padded
}

/// Decodes `\uXXXX` and `\UXXXXXXXX` to their characters.
fn decode_unicode(text: &str) -> Result<String, &'static str> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    let mut backslashes = 0;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let is_escaped = backslashes % 2 == 1;
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        match c {
            'u' | 'U' if is_escaped => {
                let digits = if c == 'u' { 4 } else { 8 };
                decoded.pop();
                decoded.push(code_point(rest, digits)?);
                rest = &rest[digits..];
            }
            // Python writes a character above U+00FF as an escape before decoding. After a backslash that escape is itself
            // escaped, and stays.
            _ if is_escaped && u32::from(c) > 0xff => decoded.push_str(&escape_form(c)),
            _ => decoded.push(c),
        }
    }
    Ok(decoded)
}

fn escape_form(c: char) -> String {
    let code = u32::from(c);
    if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") }
}

fn code_point(text: &str, digits: usize) -> Result<char, &'static str> {
    let code = text.get(..digits).filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
    let code = code.and_then(|t| u32::from_str_radix(t, 16).ok());
    let code = code.ok_or("`\\u` needs four hexadecimal digits and `\\U` eight")?;
    char::from_u32(code).ok_or("the escape is not a Unicode character")
}

/// Decodes the C escapes; an unknown one is kept with its backslash.
fn decode_bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            decoded.push(byte);
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else {
            return Err("a backslash ends the string");
        };
        rest = after;
        match escape {
            b'0'..=b'7' => decoded.push(octal(escape, &mut rest)?),
            b'x' => decoded.push(hex(&mut rest, 2)?),
            b'u' => decoded.push(hex(&mut rest, 4)?),
            b'U' => decoded.push(hex(&mut rest, 8)?),
            b'N' => return Err("`\\N` is not an escape here"),
            b'\n' => {}
            _ => match simple(escape) {
                Some(plain) => decoded.push(plain),
                None => decoded.extend([b'\\', escape]),
            },
        }
    }
    Ok(decoded)
}

fn simple(escape: u8) -> Option<u8> {
    Some(match escape {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'\'' | b'"' => escape,
        _ => return None,
    })
}

fn octal(first: u8, rest: &mut &[u8]) -> Result<u8, &'static str> {
    let mut value = u32::from(first - b'0');
    for _ in 0..2 {
        let Some((&digit @ b'0'..=b'7', after)) = rest.split_first() else { break };
        value = value * 8 + u32::from(digit - b'0');
        *rest = after;
    }
    u8::try_from(value).map_err(|_| "an octal escape must not exceed `\\377`")
}

fn hex(rest: &mut &[u8], digits: usize) -> Result<u8, &'static str> {
    let text = rest.get(..digits).and_then(|t| std::str::from_utf8(t).ok());
    let text = text.filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
    let value = text.and_then(|t| u32::from_str_radix(t, 16).ok());
    let value = value.ok_or("a hexadecimal escape needs its digits")?;
    *rest = rest.get(digits..).unwrap_or_default();
    u8::try_from(value).map_err(|_| "the escape does not fit in a byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[u8]>) {
        assert_eq!(unescape(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn escapes_are_decoded() {
        check("plain é", Some("plain é".as_bytes()));
        check(r#"\n\t\\\'\"\a\v"#, Some(b"\n\t\\'\"\x07\x0b"));
        check(r"\101\60\0", Some(b"A0\0"));
        check(r"\x41\x4z\\x4", Some(b"A\x04z\\x4"));
        check(r"\u00e9\U0001F600", Some("é😀".as_bytes()));
        check(r"\\u0041", Some(br"\u0041"));
        check(r"\u005cn", Some(b"\n"));
        check(r"\q", Some(br"\q"));
        check(r"\日", Some(br"\u65e5"));
        check(r"\é", Some(r"\é".as_bytes()));
        check(r"\400", None);
        check(r"\xg", None);
        check(r"\u12", None);
        check(r"\ud800", None);
        check(r"\U00110000", None);
        check("end\\", None);
    }
}
