//! The source files that the rules check, and the crate of each.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

use crate::process;

/// Folders and files to search for sources and documents, below the root of the checkout.
const TOPS: [&str; 11] = [
    "crates",
    "xtask",
    "tests",
    "examples",
    "fuzz",
    "docs",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];
const EXTENSIONS: [&str; 8] = ["rs", "py", "cpp", "h", "proto", "toml", "yaml", "md"];

/// All sources and documents.
pub struct Workspace {
    pub files: Vec<SourceFile>,
}

/// A file and its text.
pub struct SourceFile {
    /// Path from the root of the checkout, with `/`.
    pub path: String,
    /// Folder of its crate, or its first folder if it belongs to none.
    pub krate: String,
    pub text: String,
}

impl Workspace {
    /// Reads every file; `metadata` is the output of `cargo metadata`.
    pub fn read(metadata: &Value) -> Result<Self> {
        let root = process::root();
        let crates = crate_folders(metadata, &root);
        let mut paths = Vec::new();
        for top in TOPS {
            walk(&root.join(top), &mut paths)?;
        }
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let path = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
            Ok(SourceFile { krate: krate_of(&path, &crates), path, text })
        };
        Ok(Self { files: paths.into_iter().map(read).collect::<Result<_>>()? })
    }

    /// Returns true if the module that declares this file does so only for tests.
    pub fn is_test_module(&self, file: &SourceFile) -> bool {
        let Some((folder, name)) = file.path.rsplit_once('/') else { return false };
        let declared = format!("#[cfg(test)]\nmod {};", name.trim_end_matches(".rs"));
        let parents = ["mod.rs", "lib.rs", "main.rs"].map(|parent| format!("{folder}/{parent}"));
        let mut parents = self.files.iter().filter(|other| parents.contains(&other.path));
        parents.any(|parent| parent.text.contains(&declared))
    }

    /// Returns the Rust files of crates, with tests and examples, without generated ones.
    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs") && !file.is_generated())
    }
}

impl SourceFile {
    /// Returns true if it is compiled into its crate: it is not a test, an example or a benchmark.
    pub fn is_in_src(&self) -> bool {
        self.path.strip_prefix(&self.krate).is_some_and(|rest| rest.starts_with("/src/"))
    }

    /// Returns true if a program wrote it.
    pub fn is_generated(&self) -> bool {
        self.path.contains("/generated/")
    }

    /// Returns true if the words follow each other in the code, outside of comments and strings. A word is an identifier or a
    /// single punctuation character.
    pub fn has_tokens(&self, words: &[&str]) -> bool {
        has_tokens(&self.text, words)
    }

    /// Like [`SourceFile::has_tokens`], but only before the tests at the end of the file.
    pub fn has_tokens_outside_tests(&self, words: &[&str]) -> bool {
        has_tokens(self.before_tests(), words)
    }

    /// Returns the text before the tests at the end of the file.
    pub fn before_tests(&self) -> &str {
        let tests = self.text.find("\n#[cfg(test)]\nmod tests {");
        tests.map_or(&self.text, |tests| &self.text[..tests])
    }
}

fn has_tokens(text: &str, words: &[&str]) -> bool {
    let mut flat = Vec::new();
    if let Ok(tokens) = text.parse() {
        flatten(tokens, &mut flat);
    }
    flat.windows(words.len()).any(|window| window.iter().eq(words.iter()))
}

fn flatten(tokens: TokenStream, out: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => flatten(group.stream(), out),
            TokenTree::Ident(ident) => out.push(ident.to_string()),
            TokenTree::Punct(punct) => out.push(punct.as_char().to_string()),
            TokenTree::Literal(_) => out.push(String::new()),
        }
    }
}

/// Returns the folders of the crates from the root of the checkout, the longest first.
fn crate_folders(metadata: &Value, root: &Path) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let folder = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?).parent()?;
        Some(manifest.strip_prefix(root).ok()?.to_string_lossy().into_owned())
    };
    let mut folders: Vec<String> = packages.iter().filter_map(folder).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    folders
}

fn krate_of(path: &str, crates: &[String]) -> String {
    let is_its = |folder: &&String| path.strip_prefix(*folder).is_some_and(|r| r.starts_with('/'));
    let first = || path.split('/').next().unwrap_or_default().to_owned();
    crates.iter().find(is_its).cloned().unwrap_or_else(first)
}

fn walk(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        let extension = path.extension().and_then(|e| e.to_str());
        if extension.is_some_and(|e| EXTENSIONS.contains(&e)) {
            found.push(path.to_owned());
        }
        return Ok(());
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    for entry in entries {
        let name = entry.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let is_made = ["target", "corpus", "__pycache__"].contains(&name) || name.starts_with('.');
        if !is_made && !entry.is_symlink() {
            walk(&entry, found)?;
        }
    }
    Ok(())
}

/// Files made up for the tests of the rules: the crate is the folder above `src` or `tests`, or the second one.
#[cfg(test)]
pub fn made_up(files: &[(&str, &str)]) -> Workspace {
    let file = |(path, text): &(&str, &str)| {
        let inside = ["/src/", "/tests/"].iter().find_map(|inside| path.split_once(inside));
        let second = || path.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        let krate = inside.map_or_else(second, |(krate, _)| krate.to_owned());
        SourceFile { path: (*path).to_owned(), krate, text: (*text).to_owned() }
    };
    Workspace { files: files.iter().map(file).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_deepest_crate_above_it() {
        let crates = ["crates/perf/load".to_owned(), "crates/perf".to_owned()];
        assert_eq!(krate_of("crates/perf/load/src/lib.rs", &crates), "crates/perf/load");
        assert_eq!(krate_of("crates/perf/loads/src/lib.rs", &crates), "crates/perf");
        assert_eq!(krate_of("docs/compat.md", &crates), "docs");
    }

    #[test]
    fn tokens_come_from_code_only() {
        let workspace = made_up(&[(
            "crates/a/src/lib.rs",
            "// env::var\nfn f() { g(\"env::var\"); env::args(); h!(std::env::vars()) }",
        )]);
        assert!(workspace.files[0].has_tokens(&["env", ":", ":", "vars"]));
        assert!(!workspace.files[0].has_tokens(&["env", ":", ":", "var"]));
    }
}
