//! Only the crates that ARCHITECTURE.md names have `unsafe`, and each of them does.

use std::collections::BTreeSet;

use super::source::{SourceFile, Workspace};

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Start of the line that names the crates, each between backquotes.
const OPENING: &str = "- `unsafe` stands only in ";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let Some(document) = workspace.files.iter().find(|file| file.path == DOCUMENT) else {
        return vec![format!("{DOCUMENT}: missing")];
    };
    let named = named_crates(&document.text);
    let found: BTreeSet<&str> = workspace.rust().filter(is_unsafe).map(name_of).collect();
    let added = found
        .difference(&named)
        .map(|name| format!("{name}: has `unsafe`, and {DOCUMENT} does not name it"));
    let gone = named
        .difference(&found)
        .map(|name| format!("{DOCUMENT}: names {name} for `unsafe`, which has none"));
    added.chain(gone).collect()
}

fn is_unsafe(file: &&SourceFile) -> bool {
    file.is_in_src() && file.text.contains("unsafe") && file.has_tokens(&["unsafe"])
}

/// Returns the folder of a crate below `crates`.
fn name_of(file: &SourceFile) -> &str {
    file.krate.strip_prefix("crates/").unwrap_or(&file.krate)
}

fn named_crates(document: &str) -> BTreeSet<&str> {
    let mut lines = document.lines().skip_while(|line| !line.starts_with(OPENING));
    let line = lines.next().and_then(|line| line.strip_prefix(OPENING)).unwrap_or_default();
    // Every second piece is between backquotes.
    line.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn crates_and_document_must_agree() {
        let found = faults(&made_up(&[
            (DOCUMENT, "# A\n- `unsafe` stands only in `good` and `gone`.\n- other `words`\n"),
            ("crates/good/src/lib.rs", "fn f() { unsafe { g() } }"),
            ("crates/bad/src/lib.rs", "unsafe fn f() {}"),
            ("crates/quiet/src/lib.rs", "// unsafe\nconst A: &str = \"unsafe\";"),
            ("crates/tested/tests/it.rs", "unsafe fn f() {}"),
        ]));
        assert_eq!(
            found,
            [
                "bad: has `unsafe`, and ARCHITECTURE.md does not name it",
                "ARCHITECTURE.md: names gone for `unsafe`, which has none",
            ]
        );
    }
}
