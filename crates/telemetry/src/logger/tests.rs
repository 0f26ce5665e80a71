//! What is logged, in which form and where to.

use std::{fs, time::Duration};

use log::LevelFilter;

use super::{line::Line, *};

fn line(message: &str) -> Line<'static> {
    Line {
        severity: 'I',
        since_epoch: Duration::new(1_795_261_534, 163_989_000),
        process: 9939,
        file: "engine.rs",
        line: 174,
        message: message.to_owned(),
        format: LogFormat::Default,
        has_escaping: true,
    }
}

#[test]
fn default_format() {
    assert_eq!(
        line("loading: simple:1").text(false),
        "I1121 11:45:34.163989 9939 engine.rs:174] \"loading: simple:1\"\n"
    );
}

#[test]
fn iso_format() {
    let line = Line { format: LogFormat::Iso8601, severity: 'W', ..line("x") };
    assert_eq!(line.text(false), "2026-11-21T11:45:34Z W 9939 engine.rs:174] \"x\"\n");
}

#[test]
fn text_cannot_forge_a_line() {
    assert_eq!(
        line("cache '{\"size\":\"1\"}'\n\t\\\u{1} é/").text(false),
        "I1121 11:45:34.163989 9939 engine.rs:174] \"cache '{\\\"size\\\":\\\"1\\\"}'\\n\\t\\\\\\u0001 é/\"\n"
    );
}

#[test]
fn a_terminal_shows_all_lines_of_a_message_and_none_that_is_forged() {
    assert_eq!(
        line("config.pbtxt:3: no such field\n  3 | imput \u{1b}[2J\nE1121 11:45 x.rs:1] forged\n")
            .text(true),
        "I1121 11:45:34.163989 9939 engine.rs:174] config.pbtxt:3: no such field\n      3 | imput \\u001B[2J\n    \
         E1121 11:45 x.rs:1] forged\n"
    );
    assert_eq!(line("one line\n").text(true), line("one line\n").text(false));
    assert_eq!(line("\n+---+\n").text(true), line("\n+---+\n").text(false));
}

#[test]
fn without_escaping_the_text_is_as_written() {
    let line = Line { has_escaping: false, ..line("a \"b\"\nc") };
    assert_eq!(line.text(false), "I1121 11:45:34.163989 9939 engine.rs:174] a \"b\"\nc\n");
}

#[test]
fn tables_stand_below_their_head() {
    assert_eq!(
        line("\n+---+\n| a |\n+---+\n").text(false),
        "I1121 11:45:34.163989 9939 engine.rs:174] \n+---+\n| a |\n+---+\n\n"
    );
}

#[test]
fn levels_follow_their_flags() {
    let shown = |settings: &LogSettings| -> Vec<Level> {
        Level::iter().filter(|&level| settings.shows(level)).collect()
    };
    let default = LogSettings::default();
    assert_eq!(shown(&default), [Level::Error, Level::Warn, Level::Info]);
    assert_eq!(default.filter(), LevelFilter::Info);
    let verbose = LogSettings { verbose_level: 1, has_info: false, ..default.clone() };
    assert_eq!(shown(&verbose), [Level::Error, Level::Warn, Level::Debug]);
    assert_eq!(verbose.filter(), LevelFilter::Debug);
    let silent = LogSettings { has_info: false, has_warning: false, has_error: false, ..default };
    assert_eq!(silent.filter(), LevelFilter::Off);
}

#[test]
fn libraries_are_heard_only_when_something_is_wrong() {
    let heard =
        |target, level| is_of_interest(&Metadata::builder().target(target).level(level).build());
    assert!(heard("galatea_engine::lifecycle", Level::Debug));
    assert!(heard("hyper::proto", Level::Warn));
    assert!(!heard("hyper::proto", Level::Info));
}

/// The one test that installs the logger: it is one per process.
#[test]
fn a_log_file_is_appended_to_and_a_bad_one_changes_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("log");
    fs::write(&path, "before\n").expect("file");
    let settings = LogSettings { file: Some(path.clone()), ..LogSettings::default() };
    configure(settings.clone()).expect("file opens");
    log::info!(target: "galatea::test", "one");
    log::debug!(target: "galatea::test", "two");
    let bad = LogSettings { file: Some(dir.path().join("no/log")), ..LogSettings::default() };
    configure(bad).expect_err("no such folder");
    log::warn!(target: "galatea::test", "three");
    assert_eq!(super::settings(), settings);
    let text = fs::read_to_string(&path).expect("log");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[1].starts_with('I')
            && lines[1].ends_with("] \"one\"")
            && lines[1].contains(" tests.rs:"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with('W') && lines[2].ends_with("] \"three\""), "{}", lines[2]);

    let silent =
        LogChange { has_info: Some(false), verbose_level: Some(1), ..LogChange::default() };
    change(&silent);
    log::info!(target: "galatea::test", "four");
    log::debug!(target: "galatea::test", "five");
    change(&silent);
    let text = fs::read_to_string(&path).expect("log");
    let lines: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let told = "\"log settings are changed by a client: log_info=false log_verbose_level=1\"";
    assert!(lines[0].ends_with(told), "{}", lines[0]);
    assert!(lines[1].ends_with("\"five\""), "{}", lines[1]);
}
