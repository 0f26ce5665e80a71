//! Tests own their clocks: places in tests that sleep or read the real time are counted, and their number only falls.
//!
//! For Rust, clippy refuses the calls (`disallowed-methods` in clippy.toml); here the exceptions are counted, and loops that
//! wait by hand. For Python the calls themselves are. The counts that are allowed stand in [`LIST`].

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, bail};

use super::source::{SourceFile, Workspace};
use crate::process;

/// A line for each file: the count, a space, its path.
const LIST: &str = "tests/time-allowed.txt";
const HEAD: &str = "\
# How many places of each test file may sleep, read the real time or wait in a loop of their own. The numbers only fall:
# wait with `eventually` instead, or move a clock. `cargo xtask tidy --record-time` writes this file after some have gone.
";
/// Names in the code of a Rust test that count: an exception from the lint, and what a loop waits with.
const RUST: [&str; 4] = ["disallowed_methods", "yield_now", "park_timeout", "spin_loop"];
/// Calls in a Python file that count.
const PYTHON: [&str; 8] = [
    "time.sleep(",
    "time.time(",
    "time.time_ns(",
    "time.monotonic(",
    "time.monotonic_ns(",
    "time.perf_counter(",
    "time.perf_counter_ns(",
    "from time import",
];
/// What waits for all others, and what measures times and proves nothing by them.
const FREE: [&str; 4] = [
    "crates/shared/test-support/",
    "tests/python/waiting.py",
    "tests/bench/",
    "xtask/src/tidy/time.rs",
];
/// Where the tests of a source file begin that has them at its end.
const TESTS_OF_FILE: [&str; 2] = ["#[cfg(test)]\nmod ", "#[cfg(all(test"];

type Counts = BTreeMap<String, usize>;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    match listed() {
        Ok(listed) => differences(&counts(workspace), &listed),
        Err(error) => vec![format!("{error:#}")],
    }
}

/// Writes the counts of today, of which none may be higher than it was. Without a list it begins one.
pub fn record(workspace: &Workspace) -> Result<()> {
    let found = counts(workspace);
    let path = process::root().join(LIST);
    if path.exists() {
        let listed = listed()?;
        let raised: Vec<String> = risen(&found, &listed).collect();
        if !raised.is_empty() {
            bail!("{LIST} stays as it is:\n  {}", raised.join("\n  "));
        }
    }
    fs::write(&path, text_of(&found)).with_context(|| LIST.to_owned())?;
    println!("tidy: {LIST} has {} places in {} files", found.values().sum::<usize>(), found.len());
    Ok(())
}

fn listed() -> Result<Counts> {
    let text = fs::read_to_string(process::root().join(LIST)).with_context(|| LIST.to_owned())?;
    parse(&text)
}

fn parse(text: &str) -> Result<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (count, path) = line.split_once(' ')?;
        Some((path.to_owned(), count.parse().ok()?))
    };
    lines.map(|line| entry(line).with_context(|| format!("{LIST}: no count in {line:?}"))).collect()
}

fn text_of(counts: &Counts) -> String {
    let lines = counts.iter().map(|(path, count)| format!("{count} {path}\n"));
    HEAD.to_owned() + &lines.collect::<String>()
}

fn differences(found: &Counts, listed: &Counts) -> Vec<String> {
    let fallen = listed.iter().filter_map(|(path, count)| {
        let now = found.get(path).copied().unwrap_or_default();
        (now < *count).then(|| {
            format!("{path}: {LIST} allows {count} waits by real time, and there are {now}: run `cargo xtask tidy --record-time`")
        })
    });
    risen(found, listed).chain(fallen).collect()
}

fn risen(found: &Counts, listed: &Counts) -> impl Iterator<Item = String> {
    found.iter().filter_map(|(path, count)| {
        let allowed = listed.get(path).copied().unwrap_or_default();
        (*count > allowed).then(|| {
            format!("{path}: {count} places sleep, read the real time or wait in a loop, and {LIST} allows {allowed}: wait with `eventually`, or move a clock")
        })
    })
}

fn counts(workspace: &Workspace) -> Counts {
    let bound =
        workspace.files.iter().filter(|file| !FREE.iter().any(|f| file.path.starts_with(f)));
    let counted = bound.map(|file| (file.path.clone(), count(workspace, file)));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn count(workspace: &Workspace, file: &SourceFile) -> usize {
    let is_test = file.path.contains("/tests/") || file.path.starts_with("tests/");
    if file.path.ends_with(".py") {
        let is_test = is_test || file.path.contains("/worker-tests/");
        return if is_test { python_calls(&file.text) } else { 0 };
    }
    if !file.path.ends_with(".rs") || file.is_generated() {
        return 0;
    }
    let is_test = is_test || file.path.ends_with("/tests.rs") || workspace.is_test_module(file);
    let begin = if is_test { Some(0) } else { tests_of_file(&file.text) };
    begin.map_or(0, |begin| rust_names(&file.text[begin..]))
}

fn tests_of_file(text: &str) -> Option<usize> {
    let inline = |start: &usize| text[*start..].lines().nth(1).is_some_and(|l| l.ends_with('{'));
    let starts = TESTS_OF_FILE.iter().flat_map(|mark| text.match_indices(mark));
    starts.map(|(start, _)| start).filter(inline).min()
}

fn rust_names(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| words(line).filter(|word| RUST.contains(word)).count()).sum()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn python_calls(text: &str) -> usize {
    let is_whole = |line: &str, at: usize| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
    };
    let in_line = |line: &str| -> usize {
        let calls = PYTHON.iter().flat_map(|call| line.match_indices(call));
        calls.filter(|(at, _)| is_whole(line, *at)).count()
    };
    text.lines().filter(|line| !line.trim_start().starts_with('#')).map(in_line).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    const EXCEPTION: &str = "#[expect(clippy::disallowed_methods, reason = \"r\")]\nfn f() {}\n";

    fn counted(path: &str, text: &str) -> usize {
        counts(&made_up(&[(path, text)])).get(path).copied().unwrap_or_default()
    }

    #[test]
    fn exceptions_and_loops_count_in_rust_tests_alone() {
        let loops = "// yield_now\nwhile !x() { thread::yield_now(); }\nthread::park_timeout(d);\n";
        assert_eq!(counted("crates/a/tests/it.rs", &format!("{EXCEPTION}{loops}")), 3);
        assert_eq!(counted("crates/a/src/b/tests.rs", EXCEPTION), 1);
        assert_eq!(counted("crates/a/src/a.rs", EXCEPTION), 0);
        let both = format!("{EXCEPTION}#[cfg(test)]\nmod tests {{\n    {EXCEPTION}}}\n");
        assert_eq!(counted("crates/a/src/a.rs", &both), 1);
        let declared = format!("#[cfg(test)]\nmod tests;\n{EXCEPTION}");
        assert_eq!(counted("crates/a/src/a.rs", &declared), 0);
        assert_eq!(counted("crates/shared/test-support/src/tests.rs", EXCEPTION), 0);
    }

    #[test]
    fn calls_count_in_python_tests() {
        let text =
            "import time\ntime.sleep(1)\nx = time.monotonic() - time.time()\n# time.sleep(1)\n";
        assert_eq!(counted("tests/python/test_a.py", text), 3);
        assert_eq!(counted("tests/soak/soak.py", text), 3);
        assert_eq!(counted("tests/python/test_a.py", "datetime.time(1)\nruntime.sleep(2)\n"), 0);
        assert_eq!(counted("tests/python/test_a.py", "from time import sleep\n"), 1);
        for free in ["tests/python/waiting.py", "tests/bench/bench.py", "examples/a.py"] {
            assert_eq!(counted(free, text), 0, "{free}");
        }
    }

    #[test]
    fn the_list_only_shrinks() {
        let listed = parse("# why\n2 a.py\n1 b.rs\n1 gone.py\n").expect("a list");
        let found = parse("3 a.py\n1 b.rs\n1 new.py\n").expect("a list");
        let texts = differences(&found, &listed);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].starts_with("a.py: 3 places") && texts[0].contains("allows 2"));
        assert!(texts[1].starts_with("new.py: 1 places") && texts[1].contains("allows 0"));
        assert!(texts[2].starts_with("gone.py:") && texts[2].contains("--record-time"));
        assert!(differences(&listed, &listed).is_empty());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let counts = parse("12 tests/a b.py\n").expect("a list");
        assert_eq!(parse(&text_of(&counts)).expect("a list"), counts);
        assert!(parse("tests/a.py\n").is_err());
    }
}
