//! Completion for fish: a line per command and per option.

use std::fmt::Write;

use super::quoted;
use crate::outline::{CommandOutline, OptionOutline, below};

pub(super) fn script(commands: &[CommandOutline]) -> String {
    let mut out = "# Completion for fish. Made by `galatea completions fish`.\n".to_owned();
    for command in commands {
        let _ = writeln!(out, "\n# {}", command.path);
        let mut words = command.path.split(' ');
        let program = words.next().unwrap_or_default();
        let seen: Vec<&str> = words.collect();
        let below = below(commands, command.path);
        let others: Vec<&str> = below.iter().map(|(word, _)| *word).collect();
        let condition = condition(&seen, &others);
        for (word, below) in &below {
            let summary = quoted(below.summary);
            let _ = writeln!(out, "complete -c {program}{condition} -f -a {word} -d {summary}");
        }
        if !command.words.is_empty() {
            let words = quoted(&command.words.join(" "));
            let _ = writeln!(out, "complete -c {program}{condition} -f -a {words}");
        }
        if let Some(more) = command.more_words {
            let words = quoted(&format!("({program} {more} 2>/dev/null)"));
            let _ = writeln!(out, "complete -c {program}{condition} -f -a {words}");
        }
        for option in &command.options {
            let _ = writeln!(out, "complete -c {program}{condition}{}", option_of(option));
        }
    }
    out
}

/// Makes the condition that these commands were typed and none of those below.
fn condition(seen: &[&str], others: &[&str]) -> String {
    let mut parts: Vec<String> =
        seen.iter().map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
    if !others.is_empty() {
        parts.push(format!("not __fish_seen_subcommand_from {}", others.join(" ")));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(" -n '{}'", parts.join("; and ")),
    }
}

fn option_of(option: &OptionOutline) -> String {
    let mut out = String::new();
    if let Some(short) = option.names.short {
        let _ = write!(out, " -s {short}");
    }
    if !option.names.long.is_empty() {
        let _ = write!(out, " -l {}", option.names.long);
    }
    match option.values() {
        _ if !option.kind.needs_value() => {}
        [] if option.may_be_file() => out.push_str(" -r"),
        [] => out.push_str(" -x"),
        values => {
            let _ = write!(out, " -x -a {}", quoted(&values.join(" ")));
        }
    }
    let _ = write!(out, " -d {}", quoted(&option.first_sentence()));
    out
}
