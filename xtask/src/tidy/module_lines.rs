//! Every file begins with a line about its purpose.

use super::source::Workspace;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let rust = workspace.rust().filter(|file| !file.text.starts_with("//! "));
    let rust = rust.map(|file| format!("{}: opens without a `//!` line", file.path));
    let python = workspace.files.iter().filter(|file| file.path.ends_with(".py"));
    let python = python.filter(|file| !is_model(&file.path));
    let python = python.filter(|file| !has_docstring(&file.text));
    rust.chain(python.map(|file| format!("{}: opens without a docstring", file.path))).collect()
}

/// Returns true for a file in a version folder of a model repository: users' models may begin with anything.
fn is_model(path: &str) -> bool {
    path.split('/').any(|folder| folder.chars().all(|c| c.is_ascii_digit()))
}

fn has_docstring(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
    // An empty file marks a package.
    lines.next().is_none_or(|line| line.starts_with("\"\"\"") || line.starts_with("r\"\"\""))
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn files_without_an_opening_line_are_named() {
        let found = faults(&made_up(&[
            ("crates/a/src/good.rs", "//! Why.\n"),
            ("crates/a/src/late.rs", "use std::fs;\n//! Why.\n"),
            ("crates/a/src/empty.rs", "//!\n//! Why.\n"),
            ("crates/a/src/generated/it.rs", "pub struct A;"),
            ("crates/a/worker/good.py", "#!/usr/bin/python3\n\"\"\"Why.\"\"\"\n"),
            ("crates/a/worker/bad.py", "import os\n"),
            ("crates/a/worker/__init__.py", ""),
            ("crates/a/models/add/1/model.py", "import os\n"),
        ]));
        assert_eq!(
            found,
            [
                "crates/a/src/late.rs: opens without a `//!` line",
                "crates/a/src/empty.rs: opens without a `//!` line",
                "crates/a/worker/bad.py: opens without a docstring",
            ]
        );
    }
}
