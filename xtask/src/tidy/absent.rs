//! Features that ARCHITECTURE.md calls deliberately absent from a crate are absent from its sources.

use super::source::{SourceFile, Workspace};

/// The name of a feature, and its tokens in the code.
type Absence = (&'static str, &'static [&'static str]);

const FILES: Absence = ("files", &["fs"]);
const SOCKETS: Absence = ("sockets", &["net"]);
const CLOCKS: Absence = ("clocks", &["now"]);
/// Rules there depend on time, and tests own the clock: see `docs/adr/0035-clocks-that-tests-own.md`.
const SYSTEM_CLOCK: Absence =
    ("the system's clock (take a `Clock`)", &["Instant", ":", ":", "now"]);
const ELAPSED: Absence = ("the system's clock (take `Clock::since`)", &[".", "elapsed"]);
const PROTOBUF: Absence = ("protobuf", &["galatea_proto"]);
const ASYNC_RUNTIMES: Absence = ("an async runtime", &["tokio", ":", ":", "runtime"]);
const PRINTING: Absence = ("printing", &["println", "!"]);
const EXITING: Absence = ("exiting", &["process", ":", ":", "exit"]);

/// Crates, and the features that they lack, except in tests.
const ABSENT: &[(&str, &[Absence])] = &[
    ("crates/shared/types", &[FILES, SOCKETS]),
    ("crates/shared/command-line", &[PRINTING, EXITING]),
    ("crates/program/serve", &[PRINTING, EXITING]),
    ("crates/core/telemetry", &[SOCKETS]),
    ("crates/core/trace", &[SOCKETS, ASYNC_RUNTIMES, PROTOBUF]),
    ("crates/core/otlp", &[FILES, PROTOBUF]),
    ("crates/core/config", &[FILES, SOCKETS]),
    ("crates/core/backend", &[FILES, SOCKETS, ASYNC_RUNTIMES, PROTOBUF]),
    ("crates/backends/builtin", &[PROTOBUF]),
    ("crates/backends/onnx", &[PROTOBUF]),
    ("crates/backends/process", &[PROTOBUF]),
    ("crates/backends/python", &[PROTOBUF]),
    ("crates/backends/worker", &[PROTOBUF]),
    ("crates/backends/tensorflow", &[PROTOBUF]),
    ("crates/backends/torch", &[PROTOBUF]),
    ("crates/front/protocol", &[FILES, SOCKETS, ASYNC_RUNTIMES]),
    ("crates/core/scheduler", &[FILES, SOCKETS, ASYNC_RUNTIMES, PROTOBUF, SYSTEM_CLOCK, ELAPSED]),
    ("crates/core/engine", &[SOCKETS, PROTOBUF, SYSTEM_CLOCK, ELAPSED]),
    ("crates/perf/types", &[FILES, SOCKETS]),
    ("crates/perf/report", &[SOCKETS, CLOCKS]),
];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let files = workspace.rust().filter(|file| file.is_in_src() && !is_test(workspace, file));
    files.flat_map(file_faults).collect()
}

/// Returns true for tests. Helpers for other crates' tests (`src/testing`, a feature) count as tests too.
pub fn is_test(workspace: &Workspace, file: &SourceFile) -> bool {
    file.path.contains("/tests/")
        || file.path.contains("/src/testing/")
        || workspace.is_test_module(file)
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let absent = ABSENT.iter().filter(|(krate, _)| *krate == file.krate);
    let found = absent
        .flat_map(|(_, absent)| *absent)
        .filter(|(_, words)| file.has_tokens_outside_tests(words));
    found.map(|(what, _)| format!("{}: its crate does without {what}", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn forbidden_code_is_reported_outside_tests() {
        let text = "use std::{fs, io}; fn f() { tokio::runtime::Builder::new() }";
        let in_tests =
            "fn f(now: Instant) {}\n#[cfg(test)]\nmod tests { fn f() { Instant::now() } }";
        let found = faults(&made_up(&[
            ("crates/core/config/src/a.rs", text),
            ("crates/core/config/src/tests/a.rs", text),
            ("crates/core/config/tests/a.rs", text),
            ("crates/core/config/src/testing/a.rs", text),
            ("crates/core/scheduler/src/a.rs", "use tokio::runtime; // use std::net;"),
            (
                "crates/core/scheduler/src/b.rs",
                "fn f() { let begin = Instant::now(); begin.elapsed() }",
            ),
            ("crates/core/scheduler/src/c.rs", in_tests),
            ("crates/backends/runtimes/src/a.rs", text),
        ]));
        assert_eq!(
            found,
            [
                "crates/core/config/src/a.rs: its crate does without files",
                "crates/core/scheduler/src/a.rs: its crate does without an async runtime",
                "crates/core/scheduler/src/b.rs: its crate does without the system's clock (take a `Clock`)",
                "crates/core/scheduler/src/b.rs: its crate does without the system's clock (take `Clock::since`)",
            ]
        );
    }
}
