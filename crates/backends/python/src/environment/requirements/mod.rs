//! The packages that a model requires: `requirements.txt` or `pyproject.toml` beside it.

mod contents;
mod project;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{self, Path, PathBuf},
};

use galatea_types::{Error, Result};
use sha2::{Digest as _, Sha256};

use self::{contents::RequirementLines, project::Project};
use super::version::VersionRange;

/// The packages to install, and the versions of Python for them.
#[derive(Debug)]
pub(super) struct Requirements {
    /// The file with the requirements. `None`: numpy alone, for an interpreter that has none.
    pub file: Option<PathBuf>,
    /// Arguments of `pip install`.
    pub arguments: Vec<OsString>,
    /// Versions of Python that are required.
    pub python: Option<VersionRange>,
    /// Digest of everything that the environment depends on.
    pub digest: Sha256,
}

impl Requirements {
    /// Returns the only requirement of every model: numpy.
    pub fn numpy() -> Self {
        let digest = Sha256::new_with_prefix("numpy beside the packages of an interpreter");
        Self { file: None, arguments: vec!["numpy".into()], python: None, digest }
    }

    /// Returns the name of the environment to make, for messages.
    pub fn title(&self) -> String {
        match &self.file {
            Some(file) => format!("the Python environment from '{}'", file.display()),
            None => "a Python environment with numpy".to_owned(),
        }
    }
}

/// Finds the first file with requirements. The version's comes before the model's.
pub(super) fn find(version_dir: &Path, model_dir: &Path) -> Result<Option<Requirements>> {
    for folder in [version_dir, model_dir] {
        // The installer runs in this folder, where a path relative to the server's would mean another file.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let file = folder.join("requirements.txt");
        if let Some(text) = read(&file)? {
            return of_requirements(&file, &text).map(Some);
        }
        let file = folder.join("pyproject.toml");
        if let Some(text) = read(&file)?
            && let Some(project) = project::parse(&file, &text)?
        {
            return Ok(Some(of_project(&file, project)));
        }
    }
    Ok(None)
}

fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::unavailable(format!("cannot read '{}': {error}", file.display()))),
    }
}

fn of_requirements(file: &Path, text: &str) -> Result<Requirements> {
    let range = |version| VersionRange::of_file(file, "the comment 'python:'", version);
    let python = python_comment(text).map(range).transpose()?;
    let mut contents = RequirementLines::default();
    contents.add_file(file, text, 0);
    let mut arguments = vec!["-r".into(), file.as_os_str().to_owned()];
    // If a file has hashes, pip refuses packages without one.
    if !contents.has_numpy && !contents.has_hashes {
        arguments.push("numpy".into());
    }
    let file = Some(file.to_owned());
    Ok(Requirements { file, arguments, python, digest: contents.digest })
}

/// Reads `# python: 3.12` in the first line.
fn python_comment(text: &str) -> Option<&str> {
    let comment = text.lines().next()?.trim_start_matches('\u{feff}').trim().strip_prefix('#')?;
    Some(comment.trim().strip_prefix("python:")?.trim())
}

fn of_project(file: &Path, project: Project) -> Requirements {
    let Project { dependencies, python } = project;
    let text = dependencies.join("\n");
    let mut contents = RequirementLines::default();
    contents.add_file(file, &text, 0);
    let mut arguments: Vec<OsString> = dependencies.into_iter().map(OsString::from).collect();
    if !contents.has_numpy {
        arguments.push("numpy".into());
    }
    Requirements { file: Some(file.to_owned()), arguments, python, digest: contents.digest }
}
