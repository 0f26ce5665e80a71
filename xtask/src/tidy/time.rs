//! Tests own their clocks: places in tests that sleep or read the real time are counted, and their number only falls.
//!
//! In Rust, clippy refuses the calls (`disallowed-methods` in clippy.toml); here the exceptions and loops that wait by hand are
//! counted. In Python the calls themselves are counted. [`LIST`] names the list of allowed counts.

use anyhow::Result;

use super::{
    ratchet::{Counts, Ratchet},
    source::{SourceFile, Workspace},
};

const LIST: Ratchet = Ratchet {
    list: "tests/time-allowed.txt",
    head: "\
# How many places of each test file may sleep, read the real time or wait in a loop of their own. The numbers only fall:
# wait with `eventually` instead, or move a clock. `cargo xtask tidy --record` writes this file after some have gone.
",
    faults: "places that sleep, read the real time or wait in a loop",
    advice: "wait with `eventually`, or move a clock",
};
/// Tokens in a Rust test that count: an exception from the lint, and calls with which a loop waits.
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
/// Files that wait for all others, or that measure times without judging by them.
const FREE: [&str; 5] = [
    "crates/shared/test-support/",
    "tests/python/waiting.py",
    "tests/bench/",
    "tests/fleet/",
    "xtask/src/tidy/time.rs",
];
/// The start of the tests at the end of a source file.
const TESTS_OF_FILE: [&str; 2] = ["#[cfg(test)]\nmod ", "#[cfg(all(test"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    LIST.compare(&counts(workspace))
}

/// Lowers the allowed counts to those of today.
pub fn record(workspace: &Workspace) -> Result<()> {
    LIST.record(&counts(workspace))
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
    fn exceptions_and_loops_count_only_in_rust_tests() {
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
}
