//! Quotes text so that it cannot pass for anything else.

use std::fmt::Write;

/// The first byte of the control characters from U+0080 to U+009F, which some terminals obey, and of some letters and signs.
const FIRST_OF_C1: u8 = 0xc2;

/// Writes a JSON string; everything else above ASCII stays as it is.
pub(super) fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Writes the content of a JSON string, without quotation marks.
pub(crate) fn write_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    if is_plain(text) {
        out.push_str(text);
        rest = "";
    }
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (plain, escaped) = rest.split_at(at);
        out.push_str(plain);
        let mut escaped = escaped.chars();
        match escaped.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some(c) => push_escaped(out, c),
            None => {}
        }
        rest = escaped.as_str();
    }
    out.push_str(rest);
}

/// Returns whether a character that begins with this byte may be escaped.
fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\' || byte == FIRST_OF_C1
}

/// Returns whether there is nothing to escape, as in most texts. It looks at all bytes without stopping, many at a time.
fn is_plain(text: &str) -> bool {
    !text.bytes().fold(false, |found, byte| found | is_escaped(byte))
}

/// Writes text with its line breaks, and indents the lines after the first.
pub(super) fn write_lines(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\n    "),
            c => push_escaped(out, c),
        }
    }
}

/// Writes a character. Control characters are escaped as in JSON: they could move a terminal's cursor.
fn push_escaped(out: &mut String, c: char) {
    match c {
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if c < ' ' || ('\u{80}'..='\u{9f}').contains(&c) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04X}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Writes lines that contain colours of this program. It indents them as [`write_lines`] does, and leaves the colours out unless
/// `has_colours`.
pub(super) fn write_painted(out: &mut String, text: &str, has_colours: bool) {
    let mut pieces = text.split('\u{1b}');
    write_lines(out, pieces.next().unwrap_or_default());
    for piece in pieces {
        // `[`, numbers, `m`: the only command in such a text.
        let end = piece.find('m').map_or(0, |at| at + 1);
        let (command, rest) = piece.split_at(end);
        if has_colours {
            out.push('\u{1b}');
            out.push_str(command);
        }
        write_lines(out, rest);
    }
}
