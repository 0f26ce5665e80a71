//! Which files are found, what is installed, and which files are refused.

use sha2::Digest;

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
fn requirements_of_the_version_come_first_and_before_a_project() {
    let model = tempfile::tempdir().expect("folder");
    let version = model.path().join("1");
    fs::create_dir(&version).expect("created");
    let file = || find(&version, model.path()).expect("read").and_then(|r| r.file);
    let mut expected = None;
    for name in ["pyproject.toml", "requirements.txt", "1/pyproject.toml", "1/requirements.txt"] {
        assert_eq!(file(), expected);
        let path = model.path().join(name);
        fs::write(&path, "[project]\ndependencies = []\n").expect("written");
        expected = Some(path);
    }
    assert_eq!(file(), expected);
}

#[test]
fn numpy_is_added_unless_listed() {
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
fn dependencies_of_a_pyproject_are_read() {
    let text = "[project]\nname = 'x'\nrequires-python = '>=3.10'\n\
                dependencies = ['scipy>=1.10', \"numpy<3; python_version > '3.8'\"]\n";
    let requirements = found("pyproject.toml", text).expect("read").expect("some");
    assert_eq!(requirements.arguments, ["scipy>=1.10", "numpy<3; python_version > '3.8'"]);
    assert_eq!(requirements.python, VersionRange::parse(">=3.10"));
    assert!(found("pyproject.toml", "[tool.black]\nline-length = 9\n").expect("read").is_none());
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
    check("pyproject.toml", "[project]\ndependencies = ['--index-url=x']\n", "not a requirement");
    check("pyproject.toml", "[project]\ndependencies = 'numpy'\n", "not a list");
    check("pyproject.toml", "[project\n", "cannot read");
    check("pyproject.toml", "[project]\nrequires-python = 'new'\n", "'new' of requires-python");
    check("requirements.txt", "# python: newest\n", "'newest' of the comment");
}

#[test]
fn the_first_comment_may_set_the_python_version() {
    let python = |text: &str| found("requirements.txt", text).expect("read").expect("some").python;
    assert_eq!(python("# python: 3.12\nnumpy\n"), VersionRange::parse("3.12"));
    assert_eq!(python("#python: >=3.10,<3.12\n"), VersionRange::parse(">=3.10,<3.12"));
    assert_eq!(python("numpy\n# python: 3.12\n"), None);
}

#[test]
fn included_files_and_local_wheels_change_the_environment_key() {
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
fn recursive_includes_are_read_once_per_level() {
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("requirements.txt"), "-r requirements.txt\n").expect("written");
    assert!(find(folder.path(), folder.path()).expect("read").is_some());
}
