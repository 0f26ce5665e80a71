//! What is logged, in which form and where to.

use std::{fs, time::Duration};

use log::{LevelFilter, kv::Value};
use proptest::prelude::*;

use super::*;

fn line(message: &str) -> Line<'_> {
    Line {
        level: Level::Info,
        since_epoch: Duration::new(1_795_261_534, 163_989_000),
        process: 9939,
        file: "engine.rs",
        line: 174,
        message,
        is_table: false,
        shown: None,
    }
}

fn written(line: &Line<'_>, settings: &LogSettings, reader: Reader) -> String {
    let mut out = String::new();
    line.write(&mut out, settings, reader);
    out
}

fn as_json(line: &Line<'_>, fields: &dyn log::kv::Source) -> String {
    let mut out = String::new();
    json::write(&mut out, line, fields);
    out
}

/// As a program reads it.
fn text(line: &Line<'_>) -> String {
    written(line, &LogSettings::default(), Reader::Program)
}

fn on_terminal(line: &Line<'_>, has_colours: bool) -> String {
    written(line, &LogSettings { has_colours, ..LogSettings::default() }, Reader::Person)
}

#[test]
fn the_default_format_is_tritons() {
    assert_eq!(
        text(&line("loading: simple:1")),
        "I1121 11:45:34.163989 9939 engine.rs:174] \"loading: simple:1\"\n"
    );
}

#[test]
fn the_iso_format_has_iso_timestamps() {
    let line = Line { level: Level::Warn, ..line("x") };
    let settings = LogSettings { format: LogFormat::Iso8601, ..LogSettings::default() };
    assert_eq!(
        written(&line, &settings, Reader::Program),
        "2026-11-21T11:45:34Z W 9939 engine.rs:174] \"x\"\n"
    );
}

#[test]
fn the_json_format_has_all_fields() {
    let line = Line { level: Level::Error, ..line("\n+---+\n| \"a\" |\n+---+\n") };
    let fields: [(&str, Value<'_>); 5] = [
        ("model", Value::from("m\u{7}")),
        ("version", Value::from(-3_i64)),
        ("is_new", Value::from(true)),
        ("count", Value::from(u64::MAX)),
        (SHOWN, Value::from("not here")),
    ];
    assert_eq!(
        as_json(&line, &fields),
        "{\"time\":\"2026-11-21T11:45:34.163989Z\",\"level\":\"error\",\"model\":\"m\\u0007\",\"version\":-3,\
         \"is_new\":true,\"count\":18446744073709551615,\"text\":\"+---+\\n| \\\"a\\\" |\\n+---+\",\
         \"file\":\"engine.rs\",\"line\":174,\"pid\":9939}\n"
    );
}

proptest! {
    #[test]
    fn every_json_line_parses(message: String, model: String, file in "[^/\\\\]+") {
        let line = Line { file: &file, ..line(&message) };
        let fields = [("model", Value::from(model.as_str()))];
        let text = as_json(&line, &fields);
        prop_assert_eq!(text.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(read["text"].as_str(), Some(message.trim_matches('\n')));
        prop_assert_eq!(read["model"].as_str(), Some(model.as_str()));
        prop_assert_eq!(read["file"].as_str(), Some(file.as_str()));
    }

    #[test]
    fn a_message_never_makes_a_second_line(message in "(?s:.+)") {
        let text = text(&line(&message));
        prop_assert_eq!(text.matches('\n').count(), 1);
        prop_assert!(!text.trim_end().contains(|c: char| c < ' '));
    }
}

#[test]
fn a_message_cannot_forge_a_line() {
    assert_eq!(
        text(&line("cache '{\"size\":\"1\"}'\n\t\\\u{1} é/")),
        "I1121 11:45:34.163989 9939 engine.rs:174] \"cache '{\\\"size\\\":\\\"1\\\"}'\\n\\t\\\\\\u0001 é/\"\n"
    );
}

#[test]
fn a_terminal_shows_multi_line_messages_without_forged_lines() {
    assert_eq!(
        on_terminal(
            &line(
                "config.pbtxt:3: no such field\n  3 | imput \u{1b}[2J\nE1121 11:45 x.rs:1] forged\n"
            ),
            true
        ),
        "I1121 11:45:34.163989 9939 engine.rs:174] config.pbtxt:3: no such field\n      3 | imput \\u001B[2J\n    \
         E1121 11:45 x.rs:1] forged\n"
    );
    assert_eq!(on_terminal(&line("one line\n"), true), text(&line("one line\n")));
}

#[test]
fn tables_keep_their_lines_and_terminals_get_the_narrow_one() {
    let table = || Line { is_table: true, ..line("\n+-----+\n") };
    assert!(text(&table()).ends_with("] \n+-----+\n\n"));
    assert_eq!(on_terminal(&table(), true), text(&table()));
    let narrow = Line { shown: Some("\n+-+\n".to_owned()), ..table() };
    assert_eq!(text(&narrow), text(&table()));
    assert!(on_terminal(&narrow, true).ends_with("] \n+-+\n\n"));
    // What a model logs begins with what it likes.
    assert!(text(&line("\nE1121 forged")).ends_with("] \"\\nE1121 forged\"\n"));
}

#[test]
fn a_terminal_shows_severities_in_colour_unless_disabled() {
    let wrong = Line { level: Level::Error, ..line("x") };
    assert_eq!(
        on_terminal(&wrong, true),
        "\u{1b}[1;31mE1121 11:45:34.163989 9939 engine.rs:174]\u{1b}[0m \"x\"\n"
    );
    assert_eq!(on_terminal(&wrong, false), text(&wrong));
}

#[test]
fn a_terminal_shows_the_excerpt_instead_of_the_message() {
    let shown = Some("failed:\n\u{1b}[1mm/config.pbtxt:2:9:\u{1b}[0m wrong".to_owned());
    let line = Line { shown, ..line("failed: wrong (m/config.pbtxt:2:9)") };
    assert!(text(&line).ends_with("] \"failed: wrong (m/config.pbtxt:2:9)\"\n"));
    let painted = "] failed:\n    \u{1b}[1mm/config.pbtxt:2:9:\u{1b}[0m wrong\n";
    assert!(on_terminal(&line, true).ends_with(painted));
    let plain = "] failed:\n    m/config.pbtxt:2:9: wrong\n";
    assert!(on_terminal(&line, false).ends_with(plain));
}

#[test]
fn without_escaping_messages_are_written_unchanged() {
    let settings = LogSettings { has_escaping: false, ..LogSettings::default() };
    assert_eq!(
        written(&line("a \"b\"\nc"), &settings, Reader::Program),
        "I1121 11:45:34.163989 9939 engine.rs:174] a \"b\"\nc\n"
    );
}

#[test]
fn verbose_level_3_shows_more_than_level_2() {
    let shows = |verbose_level, target: &'static str| {
        let metadata = Metadata::builder().level(Level::Trace).target(target).build();
        LogSettings { verbose_level, ..LogSettings::default() }.shows(&metadata)
    };
    assert_eq!([1, 2, 3, 4].map(|level| shows(level, VERBOSE_3)), [false, false, true, true]);
    assert_eq!([1, 2, 3].map(|level| shows(level, "galatea_engine")), [false, true, true]);
}

#[test]
fn levels_follow_their_flags() {
    let shown = |settings: &LogSettings| -> Vec<Level> {
        let shows = |level| settings.shows(&Metadata::builder().level(level).build());
        Level::iter().filter(|&level| shows(level)).collect()
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
fn libraries_log_only_warnings_and_errors() {
    let heard =
        |target, level| is_of_interest(&Metadata::builder().target(target).level(level).build());
    assert!(heard("galatea_engine::lifecycle", Level::Debug));
    assert!(heard("hyper::proto", Level::Warn));
    assert!(!heard("hyper::proto", Level::Info));
}

/// The one test that installs the logger: it is one per process.
#[test]
fn a_log_file_is_appended_to_and_an_invalid_one_changes_nothing() {
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
    let told = "\"a client changed the log settings: log_info=false log_verbose_level=1\"";
    assert!(lines[0].ends_with(told), "{}", lines[0]);
    assert!(lines[1].ends_with("\"five\""), "{}", lines[1]);
}
