//! Every library asks the compiler for documents of its public items.

use super::source::Workspace;

/// Tokens that the root of each library must have.
const LINT: [&str; 4] = ["#", "!", "warn", "missing_docs"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_root = |path: &str, krate: &str| path.strip_prefix(krate) == Some("/src/lib.rs");
    let roots = workspace.rust().filter(|file| is_root(&file.path, &file.krate));
    let lacking = roots.filter(|file| !file.has_tokens(&LINT));
    lacking.map(|file| format!("{}: has no `#![warn(missing_docs)]`", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn libraries_without_the_lint_are_named() {
        let found = faults(&made_up(&[
            ("crates/good/src/lib.rs", "//! Why.\n#![warn(missing_docs)]\nmod a;"),
            ("crates/good/src/a.rs", ""),
            ("crates/bad/src/lib.rs", "//! #![warn(missing_docs)]\nmod a;"),
            ("crates/program/src/main.rs", ""),
        ]));
        assert_eq!(found, ["crates/bad/src/lib.rs: has no `#![warn(missing_docs)]`"]);
    }
}
