//! Command lines: what they are read into, and what refuses them.

mod advice;
mod conflicts;
mod every_option;
mod lines;
mod refusals;
mod values;
mod words;

use std::path::Path;

use galatea_perf_types::{
    console::Console,
    failure::{Exit, Failure},
    settings::Settings,
};

use super::{ParsedOptions, parse};

/// Records what is printed.
#[derive(Default)]
struct RecordingConsole {
    err: String,
}

impl Console for RecordingConsole {
    fn out(&mut self, text: &str) {
        panic!("the command line has nothing to report, but printed {text}");
    }

    fn err(&mut self, text: &str) {
        self.err.push_str(text);
    }
}

fn parse_words(words: &[&str]) -> (Result<ParsedOptions, Failure>, String) {
    let mut console = RecordingConsole::default();
    let parsed = parse("perf_analyzer", words.iter().map(|&word| word.to_owned()), &mut console);
    (parsed, console.err)
}

/// The settings of a command line, `-m x` put before it, and what it warned of.
#[track_caller]
fn run(line: &str) -> (Settings, String) {
    let words: Vec<&str> = ["-m", "x"].into_iter().chain(line.split_whitespace()).collect();
    match parse_words(&words) {
        (Ok(ParsedOptions::Run(settings)), warnings) => (*settings, warnings),
        (other, _) => panic!("{line}: {other:?}"),
    }
}

/// The settings of a command line that has nothing to warn of.
#[track_caller]
fn settings(line: &str) -> Settings {
    let (settings, warnings) = run(line);
    assert_eq!(warnings, "", "{line}");
    settings
}

/// The error of a command line, `-m x` put before it, without `Error: ` and the pointer to the help.
#[track_caller]
fn error(line: &str) -> String {
    let words: Vec<&str> = ["-m", "x"].into_iter().chain(line.split_whitespace()).collect();
    error_of(&words)
}

#[track_caller]
fn error_of(words: &[&str]) -> String {
    let (parsed, _) = parse_words(words);
    let failure = parsed.expect_err(&words.join(" "));
    assert_eq!(failure.exit, Exit::Option, "{words:?}");
    let (text, _) = failure
        .message
        .split_once("\nTry 'perf_analyzer --help' for the options.")
        .expect("the help is pointed to");
    text.strip_prefix("Error: ").unwrap_or(text).to_owned()
}

/// A line with `{file}` in it, for a file of that content.
fn with_file<T>(content: &str, line: &str, check: impl FnOnce(&str, &Path) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, content).expect("a file");
    check(&line.replace("{file}", path.to_str().expect("a plain path")), &path)
}
