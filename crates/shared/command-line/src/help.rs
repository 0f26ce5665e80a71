//! The help text, made from the table.

use std::fmt::Write;

use crate::row::{OptionRow, OptionSet, Support};

const INDENT: &str = "        ";

/// Returns the help of all options under `heading`, in lines of at most `width` columns (names aside).
pub fn help<O: OptionSet>(heading: &str, width: usize) -> String {
    let mut out = heading.to_owned();
    for group in O::groups() {
        if !group.title.is_empty() {
            let _ = write!(out, "\n{}:\n", group.title);
        }
        for row in group.rows {
            let _ =
                writeln!(out, "  {}{}", row.names.spellings().join(", "), row.kind.placeholder());
            write_wrapped(&mut out, &description(row), width);
        }
    }
    out
}

pub(crate) fn description<O: OptionSet>(row: &OptionRow<O>) -> String {
    let mut text = row.help.to_owned();
    if !row.default.is_empty() {
        let _ = write!(text, " Default is {}.", row.default);
    }
    let _ = match row.support {
        Support::NoEffect(why) if !why.is_empty() => {
            write!(text, " [accepted without effect: {why}]")
        }
        Support::Missing(what) => write!(text, " [accepted with a warning: {what}]"),
        _ => Ok(()),
    };
    text
}

fn write_wrapped(out: &mut String, text: &str, width: usize) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && INDENT.len() + line.len() + 1 + word.len() > width {
            let _ = writeln!(out, "{INDENT}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{INDENT}{line}");
}
