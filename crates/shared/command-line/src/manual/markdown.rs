//! The options of a command as tables of a Markdown page.

use std::fmt::Write;

use crate::outline::OptionOutline;

/// Returns a heading and a table for each group.
pub fn markdown(options: &[OptionOutline]) -> String {
    let mut out = String::new();
    let mut group = None;
    for option in options {
        if group != Some(option.group) {
            group = Some(option.group);
            let title = if option.group.is_empty() { "General" } else { option.group };
            let _ = write!(
                out,
                "\n## {title}\n\n| flag | value | default | what it does |\n|---|---|---|---|\n"
            );
        }
        let names: Vec<String> =
            option.names.spellings().iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            names.join(", "),
            code(&values(option)),
            code(option.default),
            cell(without_default(option))
        );
    }
    out
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
