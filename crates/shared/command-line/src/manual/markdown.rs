//! The options of a command as tables of a Markdown page.

use std::fmt::Write;

use crate::outline::OptionOutline;

/// Returns a heading and a table for each group; a column without a value is left out.
pub fn markdown(options: &[OptionOutline]) -> String {
    let groups = options.chunk_by(|one, next| one.group == next.group);
    groups.map(group).collect()
}

fn group(options: &[OptionOutline]) -> String {
    let rows: Vec<[String; 4]> = options.iter().map(row).collect();
    let is_column: [bool; 4] = std::array::from_fn(|i| rows.iter().any(|row| !row[i].is_empty()));
    let line = |cells: &[String; 4]| {
        let cells = cells.iter().zip(is_column).filter(|(_, is_column)| *is_column);
        let cells: Vec<&str> = cells.map(|(cell, _)| cell.as_str()).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let title = options.first().map(|option| option.group).filter(|group| !group.is_empty());
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(out, "\n## {}\n\n", title.unwrap_or("General"));
    out += &line(&["flag", "value", "default", "what it does"].map(str::to_owned));
    let columns = is_column.iter().filter(|is_column| **is_column).count();
    let _ = writeln!(out, "|{}", "---|".repeat(columns));
    out.extend(rows.iter().map(line));
    out
}

fn row(option: &OptionOutline) -> [String; 4] {
    let spellings = option.names.spellings();
    let names: Vec<String> = spellings.iter().map(|name| format!("`{name}`")).collect();
    let text = cell(without_default(option));
    [names.join(", "), code(&values(option)), code(option.default), text]
}

fn values(option: &OptionOutline) -> String {
    match option.values() {
        [] => {
            option.kind.placeholder().trim().trim_matches(['[', ']', '=']).replace(['<', '>'], "")
        }
        values => values.join(", "),
    }
}

/// Returns the text without the default, which has a column of its own.
fn without_default(option: &OptionOutline) -> String {
    option.text.replace(&format!(" Default is {}.", option.default), "")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", cell(text.to_owned())) }
}

/// Escapes the characters that would end a cell or begin a tag.
fn cell(text: String) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;").replace("`&lt;", "`<")
}
