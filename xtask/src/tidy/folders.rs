//! Modules with children have one layout, `foo/mod.rs` (in a test program `foo/main.rs`), and their tests another,
//! `foo/tests.rs`.

use std::collections::BTreeSet;

use super::source::{SourceFile, Workspace};

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let files: Vec<&SourceFile> = workspace.rust().collect();
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|file| Some(file.path.rsplit_once('/')?.0)).collect();
    let stems: BTreeSet<&str> =
        files.iter().filter_map(|file| file.path.strip_suffix(".rs")).collect();
    let beside = |stem: &&&str| folders.contains(**stem);
    let beside = stems
        .iter()
        .filter(beside)
        .map(|stem| format!("{stem}.rs: stands beside its folder; move it to {}", inside(stem)));
    let is_sibling =
        |stem: &&&str| stem.strip_suffix("_tests").is_some_and(|of| stems.contains(of));
    let tests = stems.iter().filter(is_sibling);
    beside
        .chain(tests.map(|stem| format!("{stem}.rs: tests stand in a folder of the module")))
        .collect()
}

/// Returns the folder's main file. Cargo finds a program of `tests` or `examples` in a folder by its `main.rs`.
fn inside(stem: &str) -> String {
    let is_program = ["tests", "examples"]
        .iter()
        .any(|top| stem.rsplit('/').nth(1) == Some(top) && !stem.contains("/src/"));
    format!("{stem}/{}.rs", if is_program { "main" } else { "mod" })
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn files_beside_their_folder_are_named() {
        let found = faults(&made_up(&[
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/good/mod.rs", ""),
            ("crates/a/src/good/part.rs", ""),
            ("crates/a/src/bad.rs", ""),
            ("crates/a/src/bad/part.rs", ""),
            ("crates/a/tests/program.rs", ""),
            ("crates/a/tests/program/server.rs", ""),
            ("crates/a/src/model.rs", ""),
            ("crates/a/src/model_tests.rs", ""),
        ]));
        assert_eq!(
            found,
            [
                "crates/a/src/bad.rs: stands beside its folder; move it to crates/a/src/bad/mod.rs",
                "crates/a/tests/program.rs: stands beside its folder; move it to crates/a/tests/program/main.rs",
                "crates/a/src/model_tests.rs: tests stand in a folder of the module",
            ]
        );
    }
}
