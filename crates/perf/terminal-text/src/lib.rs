//! Escapes the texts of others for a terminal and for JSON, so that they cannot control the terminal, and lays out tables.

#![warn(missing_docs)]

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// Returns the number of terminal columns of the text.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or_default()).sum()
}

/// Returns the part of the text that fits, with `…` if some is missing.
pub fn fitted(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or_default()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut shown: String = text.chars().take_while(fits).collect();
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// Returns true if a terminal would obey the character, or show the text after it in another order.
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes a text for one line.
pub fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// Escapes a text, but keeps line breaks and tabs.
pub fn lines(text: &str) -> String {
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

/// Escapes such characters in the strings of a JSON text.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // A line break can only be between JSON's parts: within strings it is already escaped.
        match is_command(c) && c != '\n' {
            true => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// Quotes a text so that a shell reads it as one word.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", line(text).replace('\'', r"'\''")),
    }
}

/// The table fits without narrowing a column below this width.
const NARROW: usize = 12;

/// Lays out columns, each as wide as its widest cell; the last is not padded. If they do not fit into `width`, the widest are
/// narrowed and their cells continue on further lines. A table that is still too wide, or whose last column is hardly readable,
/// has that column below.
pub fn table(rows: &[Vec<String>], width: Option<usize>) -> String {
    let widths = widths(rows, width.unwrap_or(usize::MAX));
    let needed = widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP);
    let last = widths.last().copied().unwrap_or_default();
    match width {
        Some(width) if needed > width || needed == width && last < LEAST => below(rows, width),
        _ => beside(rows, &widths),
    }
}

/// Smallest width of a last column next to the others; a narrower one is below them.
const LEAST: usize = 24;
const INDENT: usize = 4;

fn below(rows: &[Vec<String>], width: usize) -> String {
    let others =
        rows.iter().map(|row| row.split_last().map_or(Vec::new(), |(_, row)| row.to_vec()));
    let others: Vec<Vec<String>> = others.collect();
    let widths = widths(&others, width);
    let mut text = String::new();
    for (row, others) in rows.iter().zip(others) {
        text.push_str(&beside(&[others], &widths));
        let last = row.last().map(String::as_str).unwrap_or_default();
        for line in folded(last, width.saturating_sub(INDENT).max(NARROW)) {
            text.push_str(format!("{:INDENT$}{line}", "").trim_end());
            text.push('\n');
        }
    }
    text
}

fn beside(rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<&str>> =
            row.iter().zip(widths).map(|(cell, &width)| folded(cell, width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for line in 0..height {
            let mut shown = String::new();
            for (cell, width) in cells.iter().zip(widths) {
                let piece = cell.get(line).copied().unwrap_or_default();
                shown.push_str(piece);
                let blanks = (width + GAP).saturating_sub(columns(piece));
                shown.extend(std::iter::repeat_n(' ', blanks));
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Blanks between two columns.
const GAP: usize = 2;

fn widths(rows: &[Vec<String>], limit: usize) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| columns(cell)).max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = (0..count).map(width).collect();
    loop {
        let all: usize = widths.iter().map(|width| width + GAP).sum();
        let excess = all.saturating_sub(GAP).saturating_sub(limit);
        let second = second_widest(&widths);
        let Some(widest) = widths.iter_mut().max() else { return widths };
        if excess == 0 || *widest <= NARROW {
            return widths;
        }
        // Narrows to the second widest at once: a server's text may be very long.
        let least = second.clamp(NARROW, *widest - 1);
        *widest = widest.saturating_sub(excess).max(least);
    }
}

fn second_widest(widths: &[usize]) -> usize {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable();
    sorted.iter().rev().nth(1).copied().unwrap_or_default()
}

/// Divides a cell into lines of at most `width`, after blanks where possible.
pub fn folded(cell: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = cell;
    loop {
        let end = end_within(rest, width);
        if end == rest.len() {
            lines.push(rest);
            return lines;
        }
        // A blank right after the piece ends it too.
        let blank = rest.get(..=end).unwrap_or(&rest[..end]).rfind(' ').filter(|&at| at > end / 2);
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (line, more) = rest.split_at(blank.unwrap_or(end.max(first)));
        lines.push(line);
        rest = more.trim_start();
    }
}

/// Returns the end of the part of the text that fits into `width` columns.
fn end_within(text: &str, width: usize) -> usize {
    let mut room = width;
    for (at, c) in text.char_indices() {
        match room.checked_sub(c.width().unwrap_or_default()) {
            Some(left) => room = left,
            None => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_cannot_send_terminal_commands() {
        assert_eq!(line("a\x1b[2J\n\u{9b}\u{202e}é"), "a\\u{1b}[2J\\n\\u{9b}\\u{202e}é");
        assert_eq!(lines("a\n\tb\r"), "a\n\tb\\r");
        assert_eq!(json("{\n\"a\u{9b}\u{7f}\": 1}"), "{\n\"a\\u009b\\u007f\": 1}");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("simple"), "simple");
        assert_eq!(shell_word("a b'$(c)"), r"'a b'\''$(c)'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "é", "x"]), row(["bcd", "ef", ""])];
        assert_eq!(table(&rows, None), "a    é   x\nbcd  ef\n");
        assert_eq!(table(&rows, Some(8)), "a    é\n    x\nbcd  ef\n\n");
        assert_eq!(
            table(&[row(["日本", "b", "c"]), row(["x", "y", "z"])], None),
            "日本  b  c\nx     y  z\n"
        );
    }

    #[test]
    fn a_table_fits_the_terminal_width() {
        let rows = [
            vec!["NAME".to_owned(), "INPUTS".to_owned()],
            vec!["simple".to_owned(), "INPUT0 INT32 [16], INPUT1 INT32 [16] → OUTPUT0".to_owned()],
            vec![
                "a-long-name-without-a-blank".to_owned(),
                "日本日本日本日本日本日本日本日本".to_owned(),
            ],
        ];
        assert_eq!(
            table(&rows, Some(52)),
            "NAME                       INPUTS\n\
             simple                     INPUT0 INT32 [16], INPUT1\n\
             \u{20}                          INT32 [16] → OUTPUT0\n\
             a-long-name-without-a-bla  日本日本日本日本日本日本\n\
             nk                         日本日本\n"
        );
        assert_eq!(
            table(&rows, Some(30)),
            "NAME\n    INPUTS\nsimple\n    INPUT0 INT32 [16], INPUT1\n    INT32 [16] → OUTPUT0\n\
             a-long-name-without-a-blank\n    日本日本日本日本日本日本日\n    本日本\n"
        );
        for width in 0..120 {
            let shown = table(&rows, Some(width));
            let widest = shown.lines().map(columns).max().unwrap_or_default();
            assert!(widest <= width.max(NARROW + INDENT), "{width}: {shown}");
            let letters = |text: &str| text.chars().filter(|c| *c != ' ' && *c != '\n').count();
            assert_eq!(
                letters(&shown),
                rows.iter().flatten().map(|cell| letters(cell)).sum::<usize>()
            );
        }
        let huge = vec![vec!["x".repeat(1 << 20), "y".repeat(1 << 20)]];
        assert!(table(&huge, Some(80)).lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn texts_are_cut_at_display_columns() {
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("模型模型", 5), "模型…");
        assert_eq!(fitted("模型", 2), "…");
        assert_eq!(fitted("abc", 0), "");
    }
}
