//! The files of `tests/mutants`: each has a fault, and the test that detects it.

use std::{fmt, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::process;

/// A fault, read from its file.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Name of the file, without its ending.
    pub name: String,
    pub path: PathBuf,
    /// The cheapest tier of the suite that detects it.
    pub tier: String,
    pub caught_by: NamedTest,
    /// The file that it changes, from the root of the checkout.
    pub changes: PathBuf,
}

/// A test that a patch names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedTest {
    Rust {
        package: String,
        /// Path with enough modules to select only this test of the package.
        path: String,
    },
    Python {
        /// The test in pytest's form: `FILE::TEST`.
        node: String,
    },
}

impl fmt::Display for NamedTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rust { package, path } => write!(f, "rust {package} {path}"),
            Self::Python { node } => write!(f, "python {node}"),
        }
    }
}

impl Patch {
    pub fn is_named(&self, name: &str) -> bool {
        let is_of_crate = self.changes.to_string_lossy().contains(&format!("/{name}/"));
        self.name.contains(name) || is_of_crate || self.tier == name
    }
}

pub fn folder() -> PathBuf {
    process::root().join("tests/mutants")
}

/// Returns all faults, in the order of their names.
pub fn all() -> Result<Vec<Patch>> {
    let folder = folder();
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "patch"))
        .collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Result<Patch> {
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(&text, name, path.clone()).with_context(|| path.display().to_string())
}

/// Parses a patch. The lines before `---` are the description, which `git apply` ignores.
fn parse(text: &str, name: String, path: PathBuf) -> Result<Patch> {
    let field = |field: &str| {
        let mut head = text.lines().take_while(|line| !line.starts_with("--- "));
        let found = head.find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        found.with_context(|| format!("it has no line '{field}: ...' before the change"))
    };
    field("Fault")?;
    let tier = field("Tier")?;
    if !["commit", "peers"].contains(&tier) {
        bail!("its tier is '{tier}': write commit or peers");
    }
    let caught_by = match field("Caught by")?.split(' ').collect::<Vec<_>>()[..] {
        ["rust", package, path] => {
            NamedTest::Rust { package: package.to_owned(), path: path.to_owned() }
        }
        ["python", node] => NamedTest::Python { node: node.to_owned() },
        _ => bail!("write 'Caught by: rust PACKAGE TEST' or 'Caught by: python FILE::TEST'"),
    };
    let changed = text.lines().find_map(|line| line.strip_prefix("+++ b/"));
    let changes = changed.context("it changes no file: there is no line '+++ b/...'")?.into();
    Ok(Patch { name, path, tier: tier.to_owned(), caught_by, changes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::crates::Crates;

    #[test]
    fn an_incomplete_description_is_refused_with_the_missing_part() {
        let text = "Fault: a\nTier: commit\nCaught by: rust p m::t\n--- a/x/y.rs\n+++ b/x/y.rs\n";
        let read = |text: &str| parse(text, "1-a".to_owned(), PathBuf::new());
        let patch = read(text).expect("whole");
        assert_eq!(patch.caught_by.to_string(), "rust p m::t");
        assert_eq!((&*patch.tier, patch.changes.to_str()), ("commit", Some("x/y.rs")));
        assert!(patch.is_named("1-a") && patch.is_named("commit") && !patch.is_named("b"));
        for (line, other, error) in [
            ("Fault: a\n", "", "no line 'Fault: ...'"),
            ("commit", "often", "its tier is 'often'"),
            ("rust p m::t", "rust p", "write 'Caught by: rust PACKAGE TEST'"),
            ("+++ b/x/y.rs\n", "", "it changes no file"),
        ] {
            let found = read(&text.replace(line, other)).expect_err(error);
            assert!(found.to_string().contains(error), "{found}");
        }
    }

    /// Without a mutant nobody knows if the tests of a crate notice a fault.
    #[test]
    fn each_crate_has_a_mutant() {
        let changed: BTreeSet<PathBuf> =
            all().expect("readable").into_iter().map(|patch| patch.changes).collect();
        for (package, folder) in Crates::read().expect("metadata").folders() {
            let is_product = folder.starts_with("crates") && package != "galatea-test-support";
            let has_fault = changed.iter().any(|file| file.starts_with(folder));
            assert!(has_fault || !is_product, "{package}: write a fault to tests/mutants");
        }
    }
}
