//! What a model asks to have installed: `requirements.txt` or `pyproject.toml` beside it.

use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{self, Path, PathBuf},
};

use galatea_types::{Error, Result};
use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue};

use super::version::VersionRange;

/// Files that include each other are followed so deep.
const DEEPEST: usize = 8;

#[derive(Debug)]
pub(super) struct Requirements {
    /// The file that was found.
    pub file: PathBuf,
    /// What to put behind `pip install`.
    pub arguments: Vec<OsString>,
    /// The versions of Python that will do.
    pub python: Option<VersionRange>,
    /// Changes with everything that should lead to another environment.
    pub digest: Sha256,
}

/// The nearest file that asks for something: the version's before the model's.
pub(super) fn find(version_dir: &Path, model_dir: &Path) -> Result<Option<Requirements>> {
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

fn read(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::unavailable(format!("cannot read '{}': {e}", file.display()))),
    }
}

fn range(file: &Path, what: &str, text: &str) -> Result<VersionRange> {
    VersionRange::parse(text).ok_or_else(|| {
        Error::invalid_arg(format!(
            "'{}': '{text}' of {what} is no version of Python; write e.g. '3.12' or '>=3.10,<3.13'",
            file.display()
        ))
    })
}

fn of_requirements(file: &Path, text: &str) -> Result<Requirements> {
    let python = match python_comment(text) {
        Some(wanted) => Some(range(file, "the comment 'python:'", wanted)?),
        None => None,
    };
    let mut contents = Contents { digest: Sha256::new(), has_numpy: false, has_hashes: false };
    contents.add_file(file, text, 0);
    let mut arguments = vec!["-r".into(), file.as_os_str().to_owned()];
    // With hashes pip takes nothing that has none.
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

    /// What cannot be read is left to pip to complain about.
    fn add_included(&mut self, file: &Path, depth: usize) {
        if depth < DEEPEST
            && let Ok(text) = fs::read_to_string(file)
        {
            self.add_file(file, &text, depth + 1);
        }
    }

    /// A wheel or a folder named in the line: the same words elsewhere, or later, mean another thing.
    fn add_local(&mut self, folder: &Path, line: &str) {
        let words = line.split([' ', '\t', '=', '@', '[', ';']).filter(|word| word.contains('/'));
        for word in words.map(|word| word.strip_prefix("file://").unwrap_or(word)) {
            let path = folder.join(word);
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

/// `None` when the file is about something else, e.g. only the settings of a formatter.
fn of_project(file: &Path, text: &str) -> Result<Option<Requirements>> {
    let wrong =
        |what: String| Error::invalid_arg(format!("cannot read '{}': {what}", file.display()));
    let document = DeTable::parse(text).map_err(|e| wrong(e.message().to_owned()))?;
    let Some(project) = document.get_ref().get("project") else { return Ok(None) };
    let project =
        project.get_ref().as_table().ok_or_else(|| wrong("[project] is no table".into()))?;
    let python = match project.get("requires-python").map(|value| value.get_ref()) {
        None => None,
        Some(DeValue::String(text)) => Some(range(file, "requires-python", text)?),
        Some(_) => return Err(wrong("requires-python is no text".into())),
    };
    let dependencies = dependencies(project).map_err(wrong)?;
    if python.is_none() && dependencies.is_none() {
        return Ok(None);
    }
    Ok(Some(installing(file, dependencies.unwrap_or_default(), python)))
}

fn dependencies(project: &DeTable<'_>) -> Result<Option<Vec<String>>, String> {
    let is_dynamic = project.get("dynamic").and_then(|value| value.get_ref().as_array());
    if is_dynamic.is_some_and(|a| a.iter().any(|v| v.get_ref().as_str() == Some("dependencies"))) {
        return Err(
            "its dependencies are dynamic; list them in [project], or in a requirements.txt \
                    beside it"
                .into(),
        );
    }
    let Some(value) = project.get("dependencies") else { return Ok(None) };
    let list = value.get_ref().as_array().ok_or("dependencies is no list")?;
    let texts = list.iter().map(|value| match value.get_ref().as_str().map(str::trim) {
        // pip would take it for an option.
        Some(text) if !text.is_empty() && !text.starts_with('-') => Ok(text.to_owned()),
        Some(text) => Err(format!("'{text}' in dependencies is no requirement")),
        None => Err("dependencies holds something that is no text".to_owned()),
    });
    texts.collect::<Result<_, _>>().map(Some)
}

fn installing(
    file: &Path,
    dependencies: Vec<String>,
    python: Option<VersionRange>,
) -> Requirements {
    let text = dependencies.join("\n");
    let mut contents = Contents { digest: Sha256::new(), has_numpy: false, has_hashes: false };
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

    fn found(name: &str, text: &str) -> Result<Option<Requirements>> {
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
    fn what_cannot_be_followed_is_told() {
        #[track_caller]
        fn check(name: &str, text: &str, expected: &str) {
            let message = found(name, text).expect_err("wrong").message().to_owned();
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
    fn files_that_include_themselves_end() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("requirements.txt"), "-r requirements.txt\n")
            .expect("written");
        assert!(find(folder.path(), folder.path()).expect("read").is_some());
    }
}
