use std::{
    fs, io,
    path::{Path, PathBuf},
};

use galatea_types::{Error, Result};

/// The model repositories: folders that hold one folder per model.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    roots: Vec<PathBuf>,
}

/// A model's folder and what stands in it.
#[derive(Clone, Debug)]
pub(crate) struct ModelFolder {
    pub name: String,
    pub dir: PathBuf,
    /// Version folders, ascending.
    pub versions: Vec<i64>,
}

impl Repository {
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Fails on a repository that cannot be read, naming it: the server should not start on a typo.
    pub fn check(&self) -> Result<()> {
        for root in &self.roots {
            fs::read_dir(root).map_err(|e| {
                Error::invalid_arg(format!(
                    "failed to read model repository {}: {e}",
                    root.display()
                ))
            })?;
        }
        Ok(())
    }

    /// Names of all models in all repositories, sorted, each once.
    pub fn model_names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.roots.iter().filter_map(|root| folder_names(root).ok()).flatten().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The folder of a model. `Ok(None)` when no repository has it.
    pub fn locate(&self, name: &str) -> Result<Option<ModelFolder>> {
        let mut found = self.roots.iter().map(|root| root.join(name)).filter(|dir| dir.is_dir());
        let Some(dir) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            let text =
                format!("failed to poll model '{name}': not unique across all model repositories");
            return Err(Error::invalid_arg(text));
        }
        ModelFolder::open(name, dir).map(Some)
    }
}

impl ModelFolder {
    pub fn open(name: &str, dir: PathBuf) -> Result<Self> {
        let names = folder_names(&dir).map_err(|e| {
            Error::internal(format!("failed to read model folder {}: {e}", dir.display()))
        })?;
        let mut versions: Vec<i64> = names.iter().filter_map(|entry| version_of(entry)).collect();
        versions.sort_unstable();
        Ok(Self { name: name.to_owned(), dir, versions })
    }

    pub fn version_dir(&self, version: i64) -> PathBuf {
        self.dir.join(version.to_string())
    }

    /// Names of files and folders in the lowest version folder: what tells the backend.
    pub fn lowest_version_files(&self) -> Vec<String> {
        self.versions.first().map(|&v| entry_names(&self.version_dir(v))).unwrap_or_default()
    }
}

/// a positive integer without leading zeros; everything else in a model's folder is left alone.
fn version_of(entry: &str) -> Option<i64> {
    if !entry.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if entry.len() > 1 && entry.starts_with('0') {
        log::warn!(
            "ignore version directory '{entry}' which contains leading zeros in its directory name"
        );
        return None;
    }
    entry.parse().ok().filter(|&v| v > 0)
}

fn entry_names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Sub-folders, links to folders included (a repository is often a tree of links); hidden ones are skipped.
fn folder_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let Ok(entry) = entry else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with('.') && entry.path().is_dir() {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_folders() {
        for (entry, expected) in [
            ("1", Some(1)),
            ("12", Some(12)),
            ("0", None),
            ("01", None),
            ("1a", None),
            ("", None),
            ("-1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(version_of(entry), expected, "{entry:?}");
        }
    }

    #[test]
    fn finds_models_and_versions() {
        let root = tempfile::tempdir().expect("temp dir");
        for dir in ["b/1", "b/10", "b/2", "b/configs", "a/1", ".git/1"] {
            fs::create_dir_all(root.path().join(dir)).expect("dir");
        }
        fs::write(root.path().join("b/2/model.onnx"), "").expect("file");
        fs::write(root.path().join("b/1/model.pt"), "").expect("file");
        let repository = Repository::new(vec![root.path().to_owned()]);
        assert_eq!(repository.model_names(), ["a", "b"]);
        let folder = repository.locate("b").expect("readable").expect("found");
        assert_eq!(folder.versions, [1, 2, 10]);
        assert_eq!(folder.lowest_version_files(), ["model.pt"]);
        assert!(repository.locate("c").expect("readable").is_none());
    }

    #[test]
    fn a_name_in_two_repositories_is_refused() {
        let (one, two) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        for root in [&one, &two] {
            fs::create_dir_all(root.path().join("m/1")).expect("dir");
        }
        let repository = Repository::new(vec![one.path().to_owned(), two.path().to_owned()]);
        let error = repository.locate("m").expect_err("not unique");
        assert_eq!(
            error.message(),
            "failed to poll model 'm': not unique across all model repositories"
        );
    }
}
