//! Checks file names from remote places, which may be hostile, before they become paths here.

use std::collections::BTreeMap;

use crate::{
    error::{FailureKind, RemoteError},
    remote_files::RemoteFile,
};

/// Most bytes of the name of a file or folder, as in file systems.
const MAX_PART: usize = 255;

/// Most levels of folders.
const MAX_DEPTH: usize = 32;

/// Most bytes of a path below a model's folder: file systems allow 4096 with all that comes before it.
const MAX_PATH: usize = 2048;

/// Files of a model, by their path in its folder.
pub type Files = BTreeMap<String, RemoteFile>;

/// Returns true if a name can be that of a model's folder.
pub fn is_folder_name(name: &str) -> bool {
    part_problem(name).is_none()
}

/// Returns the reason why a name cannot be one part of a path.
fn part_problem(part: &str) -> Option<&'static str> {
    match part {
        "" => Some("has an empty part"),
        "." | ".." => Some("leads to another folder"),
        _ if part.len() > MAX_PART => Some("has a part of more than 255 bytes"),
        _ if part.contains('\\') => Some("has a backslash"),
        _ if part.chars().any(char::is_control) => Some("has a control character"),
        _ => None,
    }
}

/// Returns the reason why a path below a model's folder cannot be used here.
fn path_problem(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH {
        return Some("is longer than 2048 bytes");
    }
    if path.split('/').count() > MAX_DEPTH {
        return Some("has more than 32 parts");
    }
    path.split('/').find_map(part_problem)
}

/// Returns the files of a model by their path below its folder, sorted.
///
/// # Errors
/// The first file that cannot be stored here: its name leads elsewhere, or is also that of a folder. Empty files that stand
/// for a folder, which some tools make, are left out. For a version without files the mark is kept, and ends in a slash.
pub fn by_path(model: &str, files: Vec<RemoteFile>) -> Result<Files, RemoteError> {
    let mut sorted = BTreeMap::new();
    for file in files {
        let path = file.path.strip_prefix(model).and_then(|rest| rest.strip_prefix('/'));
        let Some(path) = path.map(str::to_owned) else {
            return Err(refused(&file.path, "is not in the folder of its model"));
        };
        if let Some(problem) = path_problem(&path) {
            return Err(refused(&file.path, problem));
        }
        if sorted.insert(path, file.clone()).is_some() {
            return Err(refused(&file.path, "is there twice"));
        }
    }
    without_folders(sorted)
}

fn without_folders(files: Files) -> Result<Files, RemoteError> {
    let mut plain = BTreeMap::new();
    for (path, file) in &files {
        let inside = format!("{path}/");
        let is_folder =
            files.range(inside.clone()..).next().is_some_and(|(next, _)| next.starts_with(&inside));
        match (is_folder, file.size) {
            // The mark of a version without files.
            (false, 0) if path.bytes().all(|byte| byte.is_ascii_digit()) => {
                drop(plain.insert(inside, file.clone()));
            }
            (false, _) => drop(plain.insert(path.clone(), file.clone())),
            (true, 0) => {}
            (true, _) => return Err(refused(&file.path, "is a file and a folder")),
        }
    }
    Ok(plain)
}

fn refused(path: &str, problem: &str) -> RemoteError {
    let shown: String = path.chars().take(200).collect();
    RemoteError::new(
        FailureKind::Invalid,
        format!("the file {shown:?} {problem}: rename or remove it"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> RemoteFile {
        RemoteFile { path: path.into(), size, version: "v".into(), checksum: None }
    }

    fn paths(files: &[(&str, u64)]) -> Result<Vec<String>, String> {
        let files = files.iter().map(|(path, size)| file(path, *size)).collect();
        let sorted = by_path("m", files).map_err(|error| error.to_string())?;
        Ok(sorted.into_keys().collect())
    }

    #[test]
    fn ordinary_names_become_paths_below_the_model() {
        let given = [("m/config.pbtxt", 1), ("m/1/model.onnx", 2), ("m/1/.x y", 3)];
        assert_eq!(paths(&given).expect("fine"), ["1/.x y", "1/model.onnx", "config.pbtxt"]);
        assert_eq!(paths(&[("m/1", 0), ("m/1/a", 1)]).expect("a folder's mark"), ["1/a"]);
        assert_eq!(paths(&[("m/1", 0), ("m/1-a", 1)]).expect("a folder"), ["1-a", "1/"]);
    }

    #[test]
    fn hostile_names_are_refused_by_name() {
        let long = format!("m/{}", "x".repeat(256));
        let deep = format!("m/{}", "x/".repeat(40) + "y");
        for path in [
            "m/../x",
            "m//etc/passwd",
            "m/a/./b",
            "m/a\\b",
            "m/a\0b",
            "m/a\nb",
            "other/x",
            "m",
            &long,
            &deep,
        ] {
            let text = paths(&[(path, 1)]).expect_err("refused");
            assert!(
                text.starts_with("the file \"") && text.ends_with("rename or remove it"),
                "{text}"
            );
        }
        let text = paths(&[("m/1", 5), ("m/1/a", 1)]).expect_err("refused");
        assert_eq!(text, "the file \"m/1\" is a file and a folder: rename or remove it");
        let text = paths(&[("m/a", 5), ("m/a", 1)]).expect_err("refused");
        assert!(text.contains("is there twice"), "{text}");
    }

    #[test]
    fn model_names_are_checked() {
        assert!(
            is_folder_name("resnet-50.v2") && !is_folder_name("..") && !is_folder_name("a/b\\")
        );
    }
}
