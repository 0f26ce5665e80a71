//! A manual page, in the language of `man`.

use std::fmt::Write;

use crate::outline::{CommandOutline, OptionOutline, below};

/// Returns the page of a program: its commands, and the options of each. The footer has `version`.
pub fn man_page(program: &str, version: &str, commands: &[CommandOutline]) -> String {
    let mut out = format!(
        ".TH {} 1 \"\" \"{} {}\"\n",
        program.to_uppercase(),
        escaped(program),
        escaped(version)
    );
    let own: Vec<&CommandOutline> = commands
        .iter()
        .filter(|command| {
            command.path == program || command.path.starts_with(&format!("{program} "))
        })
        .collect();
    let summary = own.first().map_or("", |command| command.summary);
    let _ = writeln!(out, ".SH NAME\n{} \\- {}", escaped(program), escaped(summary));
    out.push_str(".SH SYNOPSIS\n");
    for command in &own {
        if below(commands, command.path).is_empty() {
            let words = if command.words.is_empty() {
                String::new()
            } else {
                format!(" {}", command.words.join("|"))
            };
            let options = if command.options.is_empty() { "" } else { " [options]" };
            let _ = writeln!(
                out,
                ".B {}\n{}\n.br",
                escaped(command.path),
                escaped(&format!("{words}{options}")).trim()
            );
        }
    }
    for command in own.iter().filter(|command| !command.options.is_empty()) {
        let _ = writeln!(
            out,
            ".SH \"{}\"\n{}.",
            escaped(&command.path.to_uppercase()),
            escaped(command.summary)
        );
        let mut group = "";
        for option in &command.options {
            if option.group != group {
                group = option.group;
                let _ = writeln!(out, ".SS \"{}\"", escaped(group));
            }
            option_of(&mut out, option);
        }
    }
    out
}

fn option_of(out: &mut String, option: &OptionOutline) {
    let names: Vec<String> = option.names.spellings().iter().map(|name| escaped(name)).collect();
    let value = escaped(&option.kind.placeholder());
    let _ = writeln!(
        out,
        ".TP\n\\fB{}\\fR{value}\n{}",
        names.join("\\fR, \\fB"),
        escaped(&option.text)
    );
}

/// Escapes everything with a meaning in the language: backslashes, hyphens that are dashes, dots that begin a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}
