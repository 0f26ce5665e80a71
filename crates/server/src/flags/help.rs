use std::fmt::Write;

use super::{Flag, Kind, Support, groups};

const WIDTH: usize = 80;

/// The whole help text of `serve`.
pub fn help(program: &str) -> String {
    let mut out = format!("Usage: {program} [options]\n");
    for group in groups() {
        if !group.title.is_empty() {
            let _ = write!(out, "\n{}:\n", group.title);
        }
        for flag in group.flags {
            write_flag(&mut out, flag);
        }
    }
    out
}

fn write_flag(out: &mut String, flag: &Flag) {
    let _ = match placeholder(flag.kind) {
        "" => writeln!(out, "  --{}", flag.name),
        kind => writeln!(out, "  --{} <{kind}>", flag.name),
    };
    let mut text = flag.help.to_owned();
    if !flag.default.is_empty() && flag.takes_value() {
        let _ = write!(text, " Default is {}.", flag.default);
    }
    match flag.support {
        Support::Works => {}
        Support::NoEffect(why) => {
            let _ = write!(text, " [accepted without effect: {why}]");
        }
        Support::NotYet(what) => {
            let _ = write!(text, " [not supported yet: {what}]");
        }
    }
    write_wrapped(out, &text);
}

fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "",
        Kind::Bool => "boolean",
        Kind::Integer { .. } => "integer",
        Kind::Number => "float",
        Kind::Text | Kind::Name | Kind::Choice(_) | Kind::List => "string",
        Kind::Setting(form) => form,
    }
}

fn write_wrapped(out: &mut String, text: &str) {
    const INDENT: &str = "        ";
    let mut column = 0;
    for word in text.split_whitespace() {
        if column == 0 || column + 1 + word.len() > WIDTH {
            out.push_str(if column == 0 { INDENT } else { "\n        " });
            column = INDENT.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}
