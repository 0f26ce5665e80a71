//! Completion for the Z shell: a function per command, which `_arguments` reads.

use std::fmt::Write;

use crate::outline::{CommandOutline, OptionOutline, below, identifier, programs};

pub(super) fn script(commands: &[CommandOutline]) -> String {
    let mut out = format!("#compdef {}\n", programs(commands).join(" "));
    out.push_str("# Completion for zsh. Made by `galatea completions zsh`.\n");
    for command in commands {
        function(&mut out, commands, command);
    }
    out.push_str("\n_galatea_complete() {\n    case $service in\n");
    for program in programs(commands) {
        let _ = writeln!(out, "    {program}) {} ;;", identifier(program));
    }
    out.push_str("    esac\n}\n\n");
    let _ = writeln!(
        out,
        // An autoloading shell reads the file as the function; a sourced file registers it.
        "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n    _galatea_complete \"$@\"\nelse\n    \
         compdef _galatea_complete {}\nfi",
        programs(commands).join(" ")
    );
    out
}

fn function(out: &mut String, commands: &[CommandOutline], command: &CommandOutline) {
    let _ = writeln!(out, "\n{}() {{", identifier(command.path));
    let below = below(commands, command.path);
    if !below.is_empty() {
        sub_commands(out, &below);
    }
    out.push_str("    _arguments -S");
    for option in &command.options {
        for spec in specs(option) {
            let _ = write!(out, " \\\n        {spec}");
        }
    }
    match command.words {
        _ if command.more_words.is_some() => {
            let _ = write!(out, " \\\n        '*:word:{}_words'", identifier(command.path));
        }
        [] => out.push_str(" \\\n        '*:file:_files'"),
        words => {
            let _ = write!(out, " \\\n        '1:word:({})'", words.join(" "));
        }
    }
    out.push_str("\n}\n");
    if let Some(more) = command.more_words {
        more_words(out, command, more);
    }
}

/// Writes a function that offers the command's words, and those that a program prints.
fn more_words(out: &mut String, command: &CommandOutline, more: &str) {
    let program = command.path.split(' ').next().unwrap_or_default();
    let printed = format!("${{(f)\"$({program} {more} 2>/dev/null)\"}}");
    let words: Vec<&str> = command.words.iter().copied().chain([printed.as_str()]).collect();
    let _ = writeln!(
        out,
        "\n{}_words() {{\n    local -a offered=({})\n    compadd -- $offered\n}}",
        identifier(command.path),
        words.join(" ")
    );
}

/// Completes the first word: a command, or an option of this one.
fn sub_commands(out: &mut String, below: &[(&str, &CommandOutline)]) {
    out.push_str("    if (( CURRENT > 2 )); then\n        local command=$words[2]\n        case $command in\n");
    for (word, command) in below {
        let _ = writeln!(
            out,
            "        {word}) shift words; (( CURRENT-- )); {}; return ;;",
            identifier(command.path)
        );
    }
    out.push_str(
        "        esac\n    elif [[ $words[2] != -* ]]; then\n        local -a commands=(\n",
    );
    for (word, command) in below {
        let _ = writeln!(out, "            '{word}:{}'", text(command.summary));
    }
    out.push_str("        )\n        _describe command commands\n        return\n    fi\n");
}

/// Returns `'*--port=[text]:value:action'`, one for each name.
fn specs(option: &OptionOutline) -> Vec<String> {
    let text = text(&option.first_sentence());
    let value = match option.values() {
        _ if !option.kind.needs_value() => String::new(),
        [] if option.may_be_file() => ":value:_files".to_owned(),
        [] => ":value: ".to_owned(),
        values => format!(":value:({})", values.join(" ")),
    };
    let spec = |name: &String| {
        let attached = match (value.is_empty(), name.starts_with("--")) {
            (true, _) => "",
            (false, true) => "=",
            (false, false) => "+",
        };
        format!("'*{name}{attached}[{text}]{value}'")
    };
    option.names.spellings().iter().map(spec).collect()
}

/// Removes characters that have a meaning in a specification.
fn text(text: &str) -> String {
    text.replace(['\'', '\\', '[', ']', '`'], "").replace(':', " -")
}
