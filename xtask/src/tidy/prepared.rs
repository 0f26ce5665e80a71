//! Only the engine's check makes a prepared request, and so do tests that replace the check.

use super::source::{SourceFile, Workspace};

const CONSTRUCTOR: &str = "assume_checked";
/// The constructor's file, the engine's check, the source for tests, and the receiver of requests that the engine of another
/// process checked.
const ALLOWED: &[&str] = &[
    "crates/shared/types/src/prepared_request.rs",
    "crates/core/engine/src/prepare/",
    "crates/core/backend/src/testing/",
    "crates/backends/process/src/child/batch.rs",
];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_test = |file: &SourceFile| {
        file.path.contains("/tests/")
            || file.path.contains("/examples/")
            || workspace.is_test_module(file)
    };
    let is_allowed = |file: &SourceFile| ALLOWED.iter().any(|start| file.path.starts_with(start));
    let files = workspace.rust().filter(|file| !is_test(file) && !is_allowed(file));
    files
        .filter(|file| file.has_tokens(&[CONSTRUCTOR]))
        .map(|file| format!("{}: takes a request for checked that nobody checked", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn only_the_engine_and_tests_may_skip_the_check_of_requests() {
        let text = "fn f() { PreparedRequest::assume_checked(request, 1) }";
        let found = faults(&made_up(&[
            ("crates/core/engine/src/prepare/mod.rs", text),
            ("crates/core/scheduler/tests/a.rs", text),
            ("crates/front/http/src/a.rs", text),
        ]));
        assert_eq!(
            found,
            ["crates/front/http/src/a.rs: takes a request for checked that nobody checked"]
        );
    }
}
