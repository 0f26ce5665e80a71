//! Completion for bash: one function for all programs, with a `case` per command and per option with few values.

use std::fmt::Write;

use super::quoted;
use crate::outline::{CommandOutline, below, programs};

/// The part of the script that finds the command. It is the same for all programs. `=` is a word of its own in bash.
const FUNCTION: &str = r#"
_galatea_more() {
    [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || "${COMP_WORDS[0]/#\~/$HOME}" "$@" 2>/dev/null
}

_galatea_complete() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local path=${COMP_WORDS[0]##*/} index values
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((index = 1; index < COMP_CWORD; index++)); do
        _galatea_is_command "$path ${COMP_WORDS[index]}" || break
        path="$path ${COMP_WORDS[index]}"
    done
    COMPREPLY=()
    if values=$(_galatea_values "$path" "$previous"); then
        [[ -n $values ]] && mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_galatea_words "$path")" -- "$current")
    fi
}
"#;

pub(super) fn script(commands: &[CommandOutline]) -> String {
    let mut out = "# Completion for bash. Made by `galatea completions bash`.\n".to_owned();
    is_command(&mut out, commands);
    words(&mut out, commands);
    values(&mut out, commands);
    out.push_str(FUNCTION);
    let _ =
        writeln!(out, "complete -o default -F _galatea_complete {}", programs(commands).join(" "));
    out
}

fn is_command(out: &mut String, commands: &[CommandOutline]) {
    let paths = commands.iter().map(|command| command.path).filter(|path| path.contains(' '));
    let paths: Vec<String> = paths.map(quoted).collect();
    let paths = if paths.is_empty() { quoted("") } else { paths.join(" | ") };
    let _ = write!(
        out,
        "\n_galatea_is_command() {{\n    case $1 in\n    {paths}) return 0 ;;\n    esac\n    return 1\n}}\n"
    );
}

/// Writes the words that may stand at the cursor: commands, words and options.
fn words(out: &mut String, commands: &[CommandOutline]) {
    out.push_str("\n_galatea_words() {\n    case $1 in\n");
    for command in commands {
        let mut words: Vec<String> =
            below(commands, command.path).iter().map(|(word, _)| (*word).to_owned()).collect();
        words.extend(command.words.iter().map(|word| (*word).to_owned()));
        words.extend(command.options.iter().flat_map(|option| option.names.spellings()));
        let more = command.more_words.map(|more| format!("; _galatea_more {more}"));
        let _ = writeln!(
            out,
            "    {}) echo {}{} ;;",
            quoted(command.path),
            quoted(&words.join(" ")),
            more.unwrap_or_default()
        );
    }
    out.push_str("    esac\n}\n");
}

/// Writes the values of options. An option that takes any word lists none, and one without a value fails.
fn values(out: &mut String, commands: &[CommandOutline]) {
    out.push_str("\n_galatea_values() {\n    case \"$1 $2\" in\n");
    for command in commands {
        for option in command.options.iter().filter(|option| option.kind.needs_value()) {
            let names: Vec<String> = option
                .names
                .spellings()
                .iter()
                .map(|name| quoted(&format!("{} {name}", command.path)))
                .collect();
            let values = quoted(&option.values().join(" "));
            let _ = writeln!(out, "    {}) echo {values} ;;", names.join(" | "));
        }
    }
    out.push_str("    *) return 1 ;;\n    esac\n}\n");
}
