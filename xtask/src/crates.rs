//! The packages of the workspace: their folders and their dependencies.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The packages of the workspace, with cargo's names.
pub struct Crates(BTreeMap<String, Package>);

struct Package {
    /// Path below the root of the checkout.
    folder: PathBuf,
    needs: Vec<String>,
}

impl Crates {
    pub fn read() -> Result<Self> {
        let metadata = ["metadata", "--no-deps", "--format-version=1"];
        let output = process::cargo().args(metadata).output().context("cannot start cargo")?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
        let packages = metadata.get("packages").and_then(Value::as_array);
        let packages = packages.context("cargo metadata named no packages")?;
        Ok(Self(packages.iter().filter_map(package).collect()))
    }

    pub fn folders(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.0.iter().map(|(name, package)| (&**name, &*package.folder))
    }

    pub fn folder(&self, package: &str) -> Result<&Path> {
        let found =
            self.0.get(package).with_context(|| format!("there is no crate '{package}'"))?;
        Ok(&found.folder)
    }

    /// Returns the length of the longest chain of crates that this one depends on.
    pub fn height(&self, package: &str) -> usize {
        let needs = self.0.get(package).map(|package| &*package.needs).unwrap_or_default();
        let of_needed = needs.iter().filter(|needed| self.0.contains_key(*needed));
        of_needed.map(|needed| 1 + self.height(needed)).max().unwrap_or(0)
    }

    /// Returns the crate of a file: the one with the deepest folder that holds it.
    pub fn owner(&self, file: &Path) -> Option<&str> {
        let holders = self.folders().filter(|(_, folder)| file.starts_with(folder));
        holders.max_by_key(|(_, folder)| folder.components().count()).map(|(name, _)| name)
    }
}

fn package(value: &Value) -> Option<(String, Package)> {
    let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let manifest = PathBuf::from(text(value, "manifest_path")?);
    let folder = manifest.parent()?.strip_prefix(process::root()).ok()?.to_path_buf();
    let needs = value.get("dependencies")?.as_array()?.iter();
    // A crate may use one that depends on it, if only its tests do: that is not a chain.
    let needs = needs.filter(|needed| needed.get("kind").is_some_and(Value::is_null));
    let needs = needs.filter_map(|needed| text(needed, "name")).collect();
    Some((text(value, "name")?, Package { folder, needs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_crates_are_higher_and_a_file_has_one_owner() {
        let crates = Crates::read().expect("metadata");
        let order = ["galatea", "galatea-http", "galatea-engine", "galatea-scheduler"];
        let heights = order.map(|package| crates.height(package));
        assert!(heights.is_sorted_by(|one, next| one > next), "{heights:?}");
        let owner = crates.owner(Path::new("crates/perf/load/src/lib.rs"));
        assert_eq!(owner, Some("galatea-perf-load"));
        assert_eq!(crates.owner(Path::new("docs/index.md")), None);
    }
}
