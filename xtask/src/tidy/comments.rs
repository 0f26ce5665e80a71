//! Comments begin with the subject or the verb. Few begin with a word such as "What", which hides who does it.

use anyhow::Result;

use super::{
    ratchet::{Counts, Ratchet},
    source::{SourceFile, Workspace},
};

const LIST: Ratchet = Ratchet {
    list: "tests/comments-allowed.txt",
    head: "\
# How many comments of each file may begin with What, Of, Where, That, Whether, Who or How. The numbers only fall:
# say who does what. `cargo xtask tidy --record` writes this file after some have gone.
",
    faults: "comments that begin with What, Of, Where, That, Whether, Who or How",
    advice: "begin with the noun or the verb",
};
const OPENERS: [&str; 7] = ["What ", "Of ", "Where ", "That ", "Whether ", "Who ", "How "];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    LIST.compare(&counts(workspace))
}

/// Lowers the allowed counts to those of today.
pub fn record(workspace: &Workspace) -> Result<()> {
    LIST.record(&counts(workspace))
}

fn counts(workspace: &Workspace) -> Counts {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let product = workspace.rust().filter(|file| file.is_in_src() && !is_test(&file.path));
    let counted = product.map(|file| (file.path.clone(), count(file)));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Counts the lines of comments, because a sentence within a comment opens the same way.
fn count(file: &SourceFile) -> usize {
    let text = |line: &str| {
        let comment = line.trim_start().strip_prefix("//")?;
        let comment = comment.trim_start_matches(['/', '!']);
        comment.strip_prefix(' ').map(str::to_owned)
    };
    let opens = |text: &String| OPENERS.iter().any(|opener| text.starts_with(opener));
    file.before_tests().lines().filter_map(text).filter(opens).count()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn refused_openings_of_comments_are_counted() {
        let text = "//! What a file is.\n\n/// Where it lies.\nfn f() {\n    // Of all.\n    // Ofen.\n    let what = \"// What\";\n}\n";
        let found = counts(&made_up(&[("crates/a/src/a.rs", text)]));
        assert_eq!(found.get("crates/a/src/a.rs"), Some(&3));
    }
}
