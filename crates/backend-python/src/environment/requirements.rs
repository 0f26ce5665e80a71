//! The packages that a model requires: `requirements.txt` or `pyproject.toml` beside it.

use std::{
    ffi::OsString,
    fs,
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
    path::{self, Path, PathBuf},
};

use galatea_types::Error;
use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue};

use super::version::VersionRange;

/// How deep files that include others are followed.
const MAX_DEPTH: usize = 8;

/// What has to be installed, and in which Python.
#[derive(Debug)]
pub(super) struct Requirements {
    /// The file that was found.
    pub file: PathBuf,
    /// Arguments of `pip install`.
    pub arguments: Vec<OsString>,
    /// The required versions of Python.
    pub python: Option<VersionRange>,
    /// Of everything that the environment depends on.
    pub digest: Sha256,
}

/// The first file with requirements: the version's before the model's.
pub(super) fn find(
    version_dir: &Path,
    model_dir: &Path,
) -> Result<Option<Requirements>, RequirementsError> {
    for folder in [version_dir, model_dir] {
        // The installer runs in this folder, where a path relative to ours would mean another file.
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let file = folder.join("requirements.txt");
        if let Some(text) = read(&file)? {
            return of_requirements(&file, &text).map(Some);
        }
        let file = folder.join("pyproject.toml");
        if let Some(text) = read(&file)?
            && let Some(requirements) = of_project(&file, &text)?
        {
            return Ok(Some(requirements));
        }
    }
    Ok(None)
}

fn read(file: &Path) -> Result<Option<String>, RequirementsError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(RequirementsError::Unreadable { file: file.to_owned(), error }),
    }
}

fn range(
    file: &Path,
    setting: &'static str,
    text: &str,
) -> Result<VersionRange, RequirementsError> {
    VersionRange::parse(text).ok_or_else(|| RequirementsError::PythonVersion {
        file: file.to_owned(),
        setting,
        text: text.to_owned(),
    })
}

/// Why a file of requirements cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequirementsError {
    #[error("cannot read '{}': {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error(
        "'{}': '{text}' of {setting} is no version of Python; write e.g. '3.12' or '>=3.10,<3.13'",
        file.display()
    )]
    PythonVersion { file: PathBuf, setting: &'static str, text: String },
    #[error("cannot read '{}': {reason}", file.display())]
    Project { file: PathBuf, reason: ProjectError },
}

/// Why a `pyproject.toml` cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProjectError {
    #[error("{0}")]
    Syntax(String),
    #[error("[project] is no table")]
    NoTable,
    #[error("requires-python is no text")]
    PythonIsNoText,
    #[error(
        "its dependencies are dynamic; list them in [project], or in a requirements.txt beside it"
    )]
    DynamicDependencies,
    #[error("dependencies is no list")]
    NoList,
    #[error("dependencies holds something that is no text")]
    DependencyIsNoText,
    #[error("'{0}' in dependencies is no requirement")]
    NoRequirement(String),
}

impl From<RequirementsError> for Error {
    fn from(error: RequirementsError) -> Self {
        let text = error.to_string();
        match error {
            RequirementsError::Unreadable { .. } => Error::unavailable(text),
            RequirementsError::PythonVersion { .. } | RequirementsError::Project { .. } => {
                Error::invalid_arg(text)
            }
        }
    }
}

fn of_requirements(file: &Path, text: &str) -> Result<Requirements, RequirementsError> {
    let python = match python_comment(text) {
        Some(version) => Some(range(file, "the comment 'python:'", version)?),
        None => None,
    };
    let mut contents = Contents::default();
    contents.add_file(file, text, 0);
    let mut arguments = vec!["-r".into(), file.as_os_str().to_owned()];
    // When a file has hashes pip refuses packages without one.
    if !contents.has_numpy && !contents.has_hashes {
        arguments.push("numpy".into());
    }
    Ok(Requirements { file: file.to_owned(), arguments, python, digest: contents.digest })
}

/// `# python: 3.12` in the first line.
fn python_comment(text: &str) -> Option<&str> {
    let comment = text.lines().next()?.trim_start_matches('\u{feff}').trim().strip_prefix('#')?;
    Some(comment.trim().strip_prefix("python:")?.trim())
}

/// What the environment depends on, of a file and those it includes.
#[derive(Default)]
struct Contents {
    digest: Sha256,
    has_numpy: bool,
    has_hashes: bool,
}

impl Contents {
    fn add_file(&mut self, file: &Path, text: &str, depth: usize) {
        self.digest.update(text.len().to_le_bytes());
        self.digest.update(text);
        let folder = file.parent().unwrap_or(Path::new("."));
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            self.has_numpy |= names_numpy(line);
            self.has_hashes |= line.contains("--hash=");
            match included(line) {
                Some(name) => self.add_included(&folder.join(name), depth),
                None => self.add_local(folder, line),
            }
        }
    }

    /// A file that cannot be read is ignored here: pip reports it.
    fn add_included(&mut self, file: &Path, depth: usize) {
        if depth < MAX_DEPTH
            && let Ok(text) = fs::read_to_string(file)
        {
            self.add_file(file, &text, depth + 1);
        }
    }

    /// A wheel or a folder named in the line: the digest has its path, size and time of change.
    fn add_local(&mut self, folder: &Path, line: &str) {
        let paths = line.split([' ', '\t', '=', '@', '[', ';']).filter(|part| part.contains('/'));
        for path in paths.map(|path| path.strip_prefix("file://").unwrap_or(path)) {
            let path = folder.join(path);
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let path = fs::canonicalize(&path).unwrap_or(path);
            self.digest.update(path.as_os_str().as_bytes());
            self.digest.update(metadata.len().to_le_bytes());
            self.digest.update(format!("{:?}", metadata.modified().ok()));
        }
    }
}

/// The file of `-r FILE` and `-c FILE` in their forms.
fn included(line: &str) -> Option<&str> {
    let options = ["-r", "-c", "--requirement", "--constraint"];
    let rest = options.iter().find_map(|option| {
        let rest = line.strip_prefix(option)?;
        (rest.starts_with([' ', '\t', '=']) || option.len() == 2).then_some(rest)
    })?;
    let name = rest.trim_start_matches([' ', '\t', '=']);
    // A comment needs a space before it.
    Some(name.split(" #").next().unwrap_or(name).trim())
}

fn names_numpy(requirement: &str) -> bool {
    let file = requirement.rsplit('/').next().unwrap_or(requirement);
    let end = |text: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        text.find(|c| !is_name(c)).unwrap_or(text.len())
    };
    let name = requirement.get(..end(requirement)).unwrap_or_default();
    name.eq_ignore_ascii_case("numpy") || (file.starts_with("numpy-") && file.contains(".whl"))
}

/// `None` when the file has no requirements, e.g. only the settings of a formatter.
fn of_project(file: &Path, text: &str) -> Result<Option<Requirements>, RequirementsError> {
    let wrong = |reason| RequirementsError::Project { file: file.to_owned(), reason };
    let document = DeTable::parse(text);
    let document = document.map_err(|e| wrong(ProjectError::Syntax(e.message().to_owned())))?;
    let Some(project) = document.get_ref().get("project") else { return Ok(None) };
    let project = project.get_ref().as_table().ok_or_else(|| wrong(ProjectError::NoTable))?;
    let python = match project.get("requires-python").map(|value| value.get_ref()) {
        None => None,
        Some(DeValue::String(text)) => Some(range(file, "requires-python", text)?),
        Some(_) => return Err(wrong(ProjectError::PythonIsNoText)),
    };
    let dependencies = dependencies(project).map_err(wrong)?;
    if python.is_none() && dependencies.is_none() {
        return Ok(None);
    }
    Ok(Some(installing(file, dependencies.unwrap_or_default(), python)))
}

fn dependencies(project: &DeTable<'_>) -> Result<Option<Vec<String>>, ProjectError> {
    let is_dynamic = project.get("dynamic").and_then(|value| value.get_ref().as_array());
    if is_dynamic.is_some_and(|a| a.iter().any(|v| v.get_ref().as_str() == Some("dependencies"))) {
        return Err(ProjectError::DynamicDependencies);
    }
    let Some(value) = project.get("dependencies") else { return Ok(None) };
    let list = value.get_ref().as_array().ok_or(ProjectError::NoList)?;
    let texts = list.iter().map(|value| match value.get_ref().as_str().map(str::trim) {
        // pip would take it for an option.
        Some(text) if !text.is_empty() && !text.starts_with('-') => Ok(text.to_owned()),
        Some(text) => Err(ProjectError::NoRequirement(text.to_owned())),
        None => Err(ProjectError::DependencyIsNoText),
    });
    texts.collect::<Result<_, _>>().map(Some)
}

fn installing(
    file: &Path,
    dependencies: Vec<String>,
    python: Option<VersionRange>,
) -> Requirements {
    let text = dependencies.join("\n");
    let mut contents = Contents::default();
    contents.add_file(file, &text, 0);
    let mut arguments: Vec<OsString> = dependencies.into_iter().map(OsString::from).collect();
    if !contents.has_numpy {
        arguments.push("numpy".into());
    }
    Requirements { file: file.to_owned(), arguments, python, digest: contents.digest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Result<Option<Requirements>, RequirementsError> {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join(name), text).expect("written");
        find(&folder.path().join("1"), folder.path())
    }

    fn digest(requirements: Option<Requirements>) -> Vec<u8> {
        requirements.expect("found").digest.finalize().to_vec()
    }

    #[test]
    fn the_version_comes_before_the_model_and_requirements_before_a_project() {
        let model = tempfile::tempdir().expect("folder");
        let version = model.path().join("1");
        fs::create_dir(&version).expect("created");
        let file = || find(&version, model.path()).expect("read").map(|r| r.file);
        let mut expected = None;
        for name in ["pyproject.toml", "requirements.txt", "1/pyproject.toml", "1/requirements.txt"]
        {
            assert_eq!(file(), expected);
            let path = model.path().join(name);
            fs::write(&path, "[project]\ndependencies = []\n").expect("written");
            expected = Some(path);
        }
        assert_eq!(file(), expected);
    }

    #[test]
    fn numpy_is_added_unless_it_is_named() {
        let has = |text: &str| {
            let arguments = found("requirements.txt", text).expect("read").expect("some").arguments;
            arguments.contains(&OsString::from("numpy"))
        };
        for text in ["", "scikit-learn\n", "numpy-financial==1\n", "# numpy\n"] {
            assert!(has(text), "{text}");
        }
        for text in
            ["numpy", "torch\nNumPy>=1.26\n", "./wheels/numpy-1.0-py3-none-any.whl", "a --hash=x"]
        {
            assert!(!has(text), "{text}");
        }
    }

    #[test]
    fn a_project_gives_its_dependencies() {
        let text = "[project]\nname = 'x'\nrequires-python = '>=3.10'\n\
                    dependencies = ['scipy>=1.10', \"numpy<3; python_version > '3.8'\"]\n";
        let requirements = found("pyproject.toml", text).expect("read").expect("some");
        assert_eq!(requirements.arguments, ["scipy>=1.10", "numpy<3; python_version > '3.8'"]);
        assert_eq!(requirements.python, VersionRange::parse(">=3.10"));
        assert!(
            found("pyproject.toml", "[tool.black]\nline-length = 9\n").expect("read").is_none()
        );
        assert!(found("pyproject.toml", "[project]\nname = 'x'\n").expect("read").is_none());
    }

    #[test]
    fn errors_name_the_file_and_the_reason() {
        #[track_caller]
        fn check(name: &str, text: &str, expected: &str) {
            let message = found(name, text).expect_err("wrong").to_string();
            assert!(message.contains(expected) && message.contains(name), "{message}");
        }
        check("pyproject.toml", "[project]\ndynamic = ['dependencies']\n", "are dynamic");
        check("pyproject.toml", "[project]\ndependencies = ['--index-url=x']\n", "no requirement");
        check("pyproject.toml", "[project]\ndependencies = 'numpy'\n", "no list");
        check("pyproject.toml", "[project\n", "cannot read");
        check("pyproject.toml", "[project]\nrequires-python = 'new'\n", "'new' of requires-python");
        check("requirements.txt", "# python: newest\n", "'newest' of the comment");
    }

    #[test]
    fn the_first_comment_may_name_the_python() {
        let python =
            |text: &str| found("requirements.txt", text).expect("read").expect("some").python;
        assert_eq!(python("# python: 3.12\nnumpy\n"), VersionRange::parse("3.12"));
        assert_eq!(python("#python: >=3.10,<3.12\n"), VersionRange::parse(">=3.10,<3.12"));
        assert_eq!(python("numpy\n# python: 3.12\n"), None);
    }

    #[test]
    fn included_files_and_local_wheels_count() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("written");
        };
        let now = || digest(find(folder.path(), folder.path()).expect("read"));
        write("requirements.txt", "-r more.txt\n--constraint=pins.txt\n./a.whl\n");
        let mut seen = vec![now()];
        for (name, text) in [("more.txt", "numpy"), ("pins.txt", "x==1"), ("a.whl", "zip")] {
            write(name, text);
            let digest = now();
            assert!(!seen.contains(&digest), "{name}");
            seen.push(digest);
        }
        assert_eq!(seen.last(), Some(&now()));
        let requirements = find(folder.path(), folder.path()).expect("read").expect("some");
        assert!(!requirements.arguments.contains(&"numpy".into()), "named in the included file");
    }

    #[test]
    fn files_that_include_themselves_are_read_once_per_level() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("requirements.txt"), "-r requirements.txt\n")
            .expect("written");
        assert!(find(folder.path(), folder.path()).expect("read").is_some());
    }
}
