//! `cargo xtask texts`: prints every text that people read, with its place and kind, for a review of the words.

mod scan;

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    process::Command,
};

use anyhow::{Context, Result, bail};

use self::scan::{Found, strings};
use crate::{
    process,
    tidy::source::{SourceFile, Workspace},
};

const READ: [&str; 5] = ["/src/", "/page/", "/worker/", "/openapi/", "/shim/"];
const NOT_READ: [&str; 5] = ["/tests/", "/tests.rs", "/testing/", "/generated/", "/test-support/"];
const ENDS: [&str; 6] = ["rs", "py", "js", "cpp", "json", "html"];
const LOGS: [&str; 5] = ["warn!", "info!", "debug!", "trace!", "error!"];
const REPORTS: [&str; 3] = ["crates/perf/", "server/src/check/", "server/src/up/"];
const ERRORS: [&str; 5] = ["error", "Error", "bail!", "context", "refuse"];

/// Prints the texts, or with `--draw` some of them by chance. The same `--seed` draws the same ones.
pub fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut texts = all()?;
    match args[..] {
        [] => {}
        ["--draw", count] => draw(&mut texts, count.parse()?, 0),
        ["--draw", count, "--seed", seed] => draw(&mut texts, count.parse()?, seed.parse()?),
        _ => bail!("texts knows only --draw COUNT and --seed NUMBER"),
    }
    texts.iter().for_each(|text| println!("{text}"));
    Ok(())
}

fn draw(texts: &mut Vec<String>, count: usize, seed: u64) {
    texts.sort_by_cached_key(|text| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    });
    texts.truncate(count);
}

fn all() -> Result<Vec<String>> {
    let mut list = Command::new("git");
    let listed = list.args(["ls-files", "crates"]).current_dir(process::root()).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let holds = |path: &str, parts: &[&str]| parts.iter().any(|part| path.contains(part));
    let shipped = listed.lines().filter(|path| holds(path, &READ) && !holds(path, &NOT_READ));
    let files = shipped.filter(|path| ENDS.contains(&end(path))).map(|path| {
        let text =
            fs::read_to_string(process::root().join(path)).with_context(|| path.to_owned())?;
        Ok(SourceFile { path: path.to_owned(), krate: String::new(), text })
    });
    let workspace = Workspace { files: files.collect::<Result<_>>()? };
    let product = workspace.files.iter().filter(|file| !workspace.is_test_module(file));
    Ok(product.flat_map(texts).collect())
}

/// Returns the texts of a file, each as a line.
fn texts(file: &SourceFile) -> Vec<String> {
    let found = match end(&file.path) {
        "html" => html(&file.text),
        end => strings(file.before_tests(), end),
    };
    let line = |found: &Found| {
        let kind = kind(&file.path, found)?;
        let text = found.text.replace('\n', "\\n");
        is_phrase(&text).then(|| format!("{}:{}: {kind}: {text}", file.path, found.line))
    };
    found.iter().filter_map(line).collect()
}

fn end(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

/// Returns the text between the first and the last tag of each line.
fn html(text: &str) -> Vec<Found> {
    let inside = |line: &str| Some(line.split_once('>')?.1.rsplit_once('<')?.0.to_owned());
    let found = |(text, line)| Found { line, text, around: vec![String::new()] };
    text.lines().map(|line| inside(line).unwrap_or_default()).zip(1..).map(found).collect()
}

/// Returns true for two words or more.
fn is_phrase(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1;
    text.split(' ').filter(is_word).count() > 1
}

/// Returns the kind of a text. Texts of attributes other than `#[error]` are for programmers.
fn kind(path: &str, found: &Found) -> Option<&'static str> {
    let within = |part: &str| found.around.iter().any(|name| name.contains(part));
    match path {
        _ if found.around.is_empty() => Some("option help"),
        _ if within("#") && !within("error") => None,
        _ if LOGS.iter().any(|name| within(name)) => Some("log line"),
        _ if within("families!") || within("lists!") => Some("metric help"),
        _ if path.contains("openapi") => Some("OpenAPI description"),
        _ if path.contains("/console/") => Some("console word"),
        _ if ERRORS.iter().any(|name| within(name)) => Some("error"),
        _ if REPORTS.iter().any(|part| path.contains(part)) => Some("report"),
        _ => Some("other text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_a_place_and_a_kind() {
        let text = "// \"no text\"\n#[expect(x, reason = \"no text\")]\nfn f<'a>() {\n    warn!(\"the model {x} \\\n \
                   failed\");\n    Err(Error::new('\"', r#\"no \"model\"\"#))\n}\nconst A: T = options! {\n    /// \
            The port of\n    /// the server.\n    \"port\" => Row::of(\"a number\"),\n};\n";
        let path = "crates/a/src/a.rs".to_owned();
        let file = SourceFile { path, krate: String::new(), text: text.to_owned() };
        let expected = [
            "crates/a/src/a.rs:4: log line: the model {x} failed",
            "crates/a/src/a.rs:6: error: no \"model\"",
            "crates/a/src/a.rs:9: option help: The port of the server.",
        ];
        assert_eq!(texts(&file), expected);
    }

    #[test]
    fn the_same_seed_draws_the_same_texts() {
        let draw = |seed| {
            let mut texts: Vec<String> = (0..50).map(|at: u8| at.to_string()).collect();
            super::draw(&mut texts, 5, seed);
            texts
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
