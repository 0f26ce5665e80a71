//! Pages are short: at most 150 lines unless a program writes them, and no sentence of more than 40 words.

use anyhow::Result;

use super::{
    ratchet::{Counts, Ratchet},
    source::{SourceFile, Workspace},
};

const LIST: Ratchet = Ratchet {
    list: "tests/pages-allowed.txt",
    head: "\
# How many sentences of each page may have more than 40 words. The numbers only fall: make two sentences of one.
# `cargo xtask tidy --record` writes this file after some have gone.
",
    faults: "sentences of more than 40 words",
    advice: "make two sentences of one",
};
const MOST_LINES: usize = 150;
const MOST_WORDS: usize = 40;
/// Pages that a program writes, and tables that a test reads.
const TABLES: [&str; 4] = ["docs/flags.md", "docs/metrics.md", "docs/config.md", "docs/compat.md"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let long = pages(workspace).filter_map(|page| {
        let lines = page.text.lines().count();
        (lines > MOST_LINES && !TABLES.contains(&page.path.as_str())).then(|| {
            format!(
                "{}: {lines} lines, and a page has at most {MOST_LINES}: make two pages of it",
                page.path
            )
        })
    });
    long.chain(LIST.compare(&counts(workspace))).collect()
}

/// Lowers the allowed counts to those of today.
pub fn record(workspace: &Workspace) -> Result<()> {
    LIST.record(&counts(workspace))
}

/// Returns the pages for users. Decision records are history, and not pages.
pub fn pages(workspace: &Workspace) -> impl Iterator<Item = &SourceFile> {
    let is_page = |path: &str| {
        let below = path.strip_prefix("docs/").unwrap_or(path);
        path.ends_with(".md") && !below.contains('/')
    };
    workspace.files.iter().filter(move |file| is_page(&file.path))
}

fn counts(workspace: &Workspace) -> Counts {
    let counted = pages(workspace).map(|page| (page.path.clone(), long_sentences(&page.text)));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn long_sentences(page: &str) -> usize {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let is_long =
        |sentence: &&str| sentence.split_whitespace().filter(is_word).count() > MOST_WORDS;
    let blocks = paragraphs(page);
    blocks.iter().map(|text| text.split(['.', '!', '?', ':']).filter(is_long).count()).sum()
}

/// Returns each paragraph and list item as one line; code blocks, tables and headings are left out.
fn paragraphs(page: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_code = false;
    for line in page.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_text = !is_code && !is_fence && !line.starts_with(['|', '#']) && !line.is_empty();
        let begins = ["- ", "* ", "1. "].iter().any(|mark| line.starts_with(mark));
        if begins || !is_text {
            found.push(String::new());
        }
        if let (true, Some(last)) = (is_text, found.last_mut()) {
            *last += line;
            last.push(' ');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn long_pages_and_long_sentences_are_found() {
        let words = |count: usize| "word ".repeat(count);
        let page = format!(
            "# Title\n\n{}\n{}.\n\n```sh\n{}\n```\n- {}\n",
            words(20),
            words(21),
            words(60),
            words(40)
        );
        let found = counts(&made_up(&[("docs/a.md", &page), ("docs/adr/0001-a.md", &page)]));
        assert_eq!(found, [("docs/a.md".to_owned(), 1)].into());
        let lines = "line.\n".repeat(MOST_LINES + 1);
        let workspace = made_up(&[("docs/a.md", &lines), ("docs/flags.md", &lines)]);
        let long: Vec<_> =
            faults(&workspace).into_iter().filter(|f| f.contains("two pages")).collect();
        assert_eq!(long.len(), 1, "{long:?}");
    }
}
