//! Advice for a refused command line: a similar command, or an option with another name.

use std::path::Path;

use galatea_command_line::{CommandLineError, OptionOutline, outline};
use galatea_types::suggest;

use crate::flags::{FlagError, ServeFlags, Words};

/// Names that other programs have for a command.
const OTHER_COMMANDS: [(&[&str], &str); 10] = [
    (&["list", "ls", "ps"], "models"),
    (&["predict", "ask", "call", "client"], "infer"),
    (&["validate", "lint", "verify", "doctor"], "check"),
    (&["start", "run", "demo", "example", "try", "quickstart", "hello"], "up"),
    (&["launch", "host", "tritonserver"], "serve"),
    (&["bench", "benchmark", "perf_analyzer", "load", "test"], "perf"),
    (&["install", "download", "pull"], "runtime install"),
    (&["uninstall", "remove", "rm"], "runtime remove"),
    (&["clean", "prune", "gc"], "cache clean"),
    (&["version"], "--version"),
];

/// Names that other servers have for an option of `serve`.
const OTHER_OPTIONS: [(&[&str], &str); 5] = [
    (&["port"], "http-port"),
    (&["host", "address", "bind"], "http-address"),
    (&["models", "model-path", "model-dir", "repository", "repo", "path"], "model-repository"),
    (&["verbose", "debug", "log-level"], "log-verbose"),
    (&["timeout"], "exit-timeout-secs"),
];

/// Returns the advice after the refusal of `name`: the nearest of the `known` names.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = suggest::nearest(name, known).first().copied();
    near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

/// Returns advice for a first word that is not one of the `commands`. `words`: all words from it on.
pub fn for_command(words: &[String], commands: impl Iterator<Item = &'static str>) -> String {
    const LIST: &str = "`galatea --help` lists the commands";
    let Some(word) = words.first() else { return LIST.to_owned() };
    if let Some(owner) = owner(word) {
        return format!("it is an option of `galatea {owner}`: galatea {owner} {}", typed(words));
    }
    let commands = commands.chain(["help", "--help", "--version"]);
    if let Some(near) = suggest::nearest(word, commands).first() {
        return format!("did you mean '{near}'? {LIST}");
    }
    let other = OTHER_COMMANDS.iter().find(|(names, _)| names.contains(&word.as_str()));
    if let Some((_, command)) = other {
        return format!("did you mean `galatea {command}`? {LIST}");
    }
    match Path::new(word).exists() {
        true => format!("to serve it: galatea serve {}", typed(words)),
        false => LIST.to_owned(),
    }
}

/// Returns advice for a refused command line of `serve`, to follow the error.
pub fn for_serve(error: &FlagError, others: Words) -> Option<String> {
    let error = match error {
        FlagError::NoRepository if others == Words::Paths => {
            return Some(
                ". Name what to serve: a repository, a model's folder, or a model file, as in `galatea serve iris.onnx`"
                    .into(),
            );
        }
        FlagError::CommandLine(error) => error,
        _ => return None,
    };
    match error {
        CommandLineError::Unknown { given, hint } => {
            if let Some(owner) = owner(given).filter(|owner| *owner != "serve") {
                return Some(format!("; `galatea {owner}` has an option of that name"));
            }
            let name = name_of(given).trim_start_matches('-');
            let other = OTHER_OPTIONS.iter().find(|(names, _)| names.contains(&name));
            other.filter(|_| hint.is_none()).map(|(_, option)| format!("; see --{option}"))
        }
        CommandLineError::UnknownLetter { letter } => {
            let owner = owner(&format!("-{letter}"))?;
            Some(format!("; it is an option of `galatea {owner}`"))
        }
        _ => None,
    }
}

/// Returns advice for a refused command line of `perf` with an option of `serve`.
pub fn for_perf(words: &[String]) -> Option<String> {
    let is_of_serve = |word: &&String| owner(word) == Some("serve");
    let own = galatea_perf::options::outline();
    let word = words.iter().filter(|word| !is_of(&own, word)).find(is_of_serve)?;
    Some(format!("'{}' is an option of `galatea serve`", name_of(word)))
}

/// Returns the command that has an option of exactly this name, `serve` before `perf`.
fn owner(word: &str) -> Option<&'static str> {
    if is_of(&outline::<ServeFlags>(), word) {
        return Some("serve");
    }
    is_of(&galatea_perf::options::outline(), word).then_some("perf")
}

fn is_of(options: &[OptionOutline], word: &str) -> bool {
    let name = name_of(word);
    let long = name.strip_prefix("--").filter(|long| !long.is_empty());
    let letter = name.strip_prefix('-').filter(|letter| letter.chars().count() == 1);
    options.iter().any(|option| {
        long == Some(option.names.long)
            || letter.is_some_and(|letter| option.names.short == letter.chars().next())
    })
}

/// Returns an option without its value.
fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Returns the words as typed, or `...` if a shell would read them differently.
pub fn typed(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=/.,:+@%".contains(c);
    match words.iter().all(|word| word.chars().all(is_plain)) {
        true => words.join(" "),
        false => "...".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flags, texts::command_names};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn unknown_commands_get_advice() {
        for (line, expected) in [
            ("sevre", "did you mean 'serve'?"),
            ("--model-repository=/m", "galatea serve --model-repository=/m"),
            ("--http-port 80 --id=x", "galatea serve --http-port 80 --id=x"),
            ("-m simple", "galatea perf -m simple"),
            ("start", "did you mean `galatea up`?"),
            ("run", "did you mean `galatea up`?"),
            ("demo", "did you mean `galatea up`?"),
            ("launch", "did you mean `galatea serve`?"),
            ("prune", "did you mean `galatea cache clean`?"),
            ("uninstall pytorch", "did you mean `galatea runtime remove`?"),
            ("bench -m x", "did you mean `galatea perf`?"),
            ("/dev/null", "galatea serve /dev/null"),
            ("/nonexistent", "`galatea --help` lists the commands"),
        ] {
            let advice = for_command(&words(line), command_names());
            assert!(advice.contains(expected), "{line}: {advice}");
        }
        let odd = ["--model-repository=$(x)".to_owned()];
        assert!(
            for_command(&odd, command_names()).ends_with("galatea serve ..."),
            "nothing to be pasted blindly"
        );
    }

    #[test]
    fn options_of_another_command_get_advice() {
        let of_serve = |line: &str| {
            let refused = flags::parse(words(line), Words::Paths).expect_err(line);
            for_serve(&refused, Words::Paths)
        };
        let advice = of_serve("--concurrency-range=4").expect("known");
        assert_eq!(advice, "; `galatea perf` has an option of that name");
        assert_eq!(of_serve("-m x").expect("known"), "; it is an option of `galatea perf`");
        assert_eq!(of_serve("--port=1").expect("known"), "; see --http-port");
        assert_eq!(of_serve("--modle-repository=1"), None);
        let advice = for_perf(&words("-m x --http-port=1")).expect("known");
        assert_eq!(advice, "'--http-port' is an option of `galatea serve`");
        assert_eq!(for_perf(&words("-m x --what")), None);
    }
}
