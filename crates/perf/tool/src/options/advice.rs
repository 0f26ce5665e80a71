//! Advice for a refused command line: a choice or a range in another form, an option with another name, a model without its
//! `-m`. It is on a line after the error, whose words are a format.

use galatea_command_line::CommandLineError;
use galatea_types::suggest;

use super::error::OptionError;

/// Option names of other load tools, and the ones here.
const OTHER_NAMES: &[(&[&str], &str)] = &[
    (&["model", "model-name", "models", "model-names"], "-m <model>"),
    (&["model-version"], "-x <version>"),
    (&["url", "host", "address", "server", "endpoint-url"], "-u <host:port>"),
    (&["protocol", "grpc", "http"], "-i http or -i grpc"),
    (&["batch", "batch-size"], "-b <n>"),
    (&["header", "headers"], "-H <header:value>"),
    (&["connections", "clients", "num-clients", "users"], "--concurrency-range <n>"),
    (&["rate", "qps", "rps"], "--request-rate-range <n>"),
    (&["requests", "num-requests", "num-prompts", "num-dataset-entries"], "--request-count <n>"),
    (&["duration", "window", "benchmark-duration"], "--measurement-interval <msec>"),
    (&["warmup", "warmup-requests"], "--warmup-request-count <n>"),
    (&["threads", "num-threads"], "--max-threads <n>"),
    (&["verbose"], "-v"),
    (&["csv", "csv-file", "output", "output-file"], "-f <file>"),
    (&["export", "artifact-dir", "profile-export"], "--profile-export-file <file>"),
    (&["input-file", "data", "input"], "--input-data <file>"),
];

/// Choices of an option, by the option's name in errors.
const CHOICES: &[(&str, &[&str])] = &[
    ("-i (protocol)", &["http", "grpc"]),
    ("--input-data", &["random", "zero"]),
    ("--shared-memory", &["none", "system", "memfd"]),
    ("--service-kind", &["triton"]),
    ("--request-distribution", &["constant", "poisson"]),
    ("--measurement-mode", &["time_windows", "count_windows"]),
    ("--grpc-compression-algorithm", &["none", "gzip", "deflate"]),
    ("--input-tensor-format", &["binary", "json"]),
    ("--output-tensor-format", &["binary", "json"]),
    ("--trace-level", &["OFF", "TIMESTAMPS", "TENSORS"]),
    ("--ssl-https-client-certificate-type", &["PEM", "DER"]),
    ("--ssl-https-private-key-type", &["PEM", "DER"]),
];

/// Returns advice for a refused command line. `words`: all of it.
pub fn for_error(error: &OptionError, words: &[String]) -> Option<String> {
    let meant = match error {
        OptionError::CommandLine(CommandLineError::Unknown { given, hint: None }) => {
            other_name(given)
        }
        OptionError::CommandLine(CommandLineError::Ambiguous { given, .. }) => other_name(given),
        OptionError::Unmet { label, .. } => choice(label, words),
        OptionError::Invalid { option, value, .. } => {
            number(value).map(|value| format!("{option} {value}"))
        }
        _ => None,
    };
    meant.map(|meant| format!("Did you mean '{meant}'?"))
}

/// Returns advice for a command line without a model, but with a word that belongs to no option.
pub fn for_stray_word(word: &str) -> String {
    format!("Did you mean '-m {word}'?")
}

fn other_name(given: &str) -> Option<String> {
    let name = given.split('=').next().unwrap_or(given).trim_start_matches('-').replace('_', "-");
    OTHER_NAMES
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()))
        .map(|(_, ours)| (*ours).to_owned())
}

/// Returns the choice that is nearest to the refused word.
fn choice(label: &str, words: &[String]) -> Option<String> {
    let (_, choices) = CHOICES.iter().find(|(name, _)| *name == label)?;
    let option = label.split(' ').next()?;
    let value = value_of(option, words)?;
    let beginning = |choice: &&&str| choice.starts_with(value.as_str()) && !value.is_empty();
    let near = choices.iter().copied().find(|choice| choice.eq_ignore_ascii_case(&value));
    let near = near.or_else(|| choices.iter().find(beginning).copied());
    let near =
        near.or_else(|| suggest::nearest(&value, choices.iter().copied()).first().copied())?;
    Some(format!("{option} {near}"))
}

/// Returns the value after an option, or within its word.
fn value_of(option: &str, words: &[String]) -> Option<String> {
    let at = words.iter().rposition(|word| {
        word == option
            || word
                .strip_prefix(option)
                .is_some_and(|rest| rest.starts_with('=') || option.len() == 2)
    })?;
    let word = words.get(at)?;
    match word.strip_prefix(option)? {
        "" => words.get(at + 1).cloned(),
        rest => Some(rest.trim_start_matches('=').to_owned()),
    }
}

/// Returns a number or a range in the form used here: `1-4`, `1..4` and `1,4` are `1:4`, `95%` is `95`.
fn number(value: &str) -> Option<String> {
    let text = value.trim().trim_start_matches(['p', 'P']);
    let plain = ["ms", "s", "%"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    let parts: Vec<&str> =
        plain.split(['-', ',', ':', '.']).filter(|part| !part.is_empty()).collect();
    let is_number = |part: &&str| part.len() < 10 && part.chars().all(|c| c.is_ascii_digit());
    let is_range =
        (2..=3).contains(&parts.len()) && !plain.starts_with(['-', '.']) && !plain.contains(":-");
    match parts.as_slice() {
        // A fraction is not a range.
        [_, _] if plain.contains('.') && !plain.contains("..") => None,
        _ if !parts.iter().all(is_number) => None,
        [only] if *only == plain && plain != value => Some((*only).to_owned()),
        many if is_range => Some(many.join(":")).filter(|meant| meant != value),
        _ => None,
    }
}
