//! Texts of a server for a terminal and for JSON: what would command the terminal is shown as an escape.

use std::fmt::Write;

/// Whether a terminal would obey it, or show what follows in another order.
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    escaped(text, |c| c == '\n' || c == '\t')
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_command(c) && !keeps(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// JSON whose strings may hold such characters, into the same JSON without them.
pub(crate) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // The others that it could hold are line breaks between its parts: within strings they are escaped already.
        match is_command(c) && c != '\n' {
            true => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// A word that a shell reads as this text.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", line(text).replace('\'', r"'\''")),
    }
}

/// Columns, each as wide as its widest cell; the last is not padded.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut shown = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            shown.push_str(cell);
            shown.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(line("a\x1b[2J\n\u{9b}\u{202e}é"), "a\\u{1b}[2J\\n\\u{9b}\\u{202e}é");
        assert_eq!(lines("a\n\tb\r"), "a\n\tb\\r");
        assert_eq!(json("{\n\"a\u{9b}\u{7f}\": 1}"), "{\n\"a\\u009b\\u007f\": 1}");
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(shell_word("simple"), "simple");
        assert_eq!(shell_word("a b'$(c)"), r"'a b'\''$(c)'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        assert_eq!(table(&[row(["a", "é", "x"]), row(["bcd", "ef", ""])]), "a    é   x\nbcd  ef\n");
    }
}
