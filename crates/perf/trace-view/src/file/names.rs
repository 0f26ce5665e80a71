//! The files of one name: a server writes `FILE`, and with a log frequency `FILE.0`, `FILE.1` and so on.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Returns `FILE` if it exists, then all `FILE.n` in the order of their numbers.
///
/// # Errors
/// If there is no such file.
pub(crate) fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    let numbered = numbered(path).unwrap_or_default();
    match path.try_exists() {
        Ok(false) if !numbered.is_empty() => Ok(numbered),
        Ok(true) => Ok([path.to_owned()].into_iter().chain(numbered).collect()),
        Ok(false) => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(error),
    }
}

fn numbered(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?.file_name();
        let rest = entry.to_str().and_then(|entry| entry.strip_prefix(name)?.strip_prefix('.'));
        if let Some(rest) = rest
            && let Ok(number) = rest.parse::<u64>()
            && number.to_string() == rest
        {
            found.push((number, path.with_file_name(&entry)));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_follow_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in
            ["t.json.10", "t.json.2", "t.json.0", "t.json.07", "t.json.x", "t.jso.1", "t.json.2.3"]
        {
            fs::write(at(name), "[]").expect("a file");
        }
        let wanted = ["t.json.0", "t.json.2", "t.json.10"].map(at).to_vec();
        assert_eq!(files_of(&at("t.json")).expect("files"), wanted);
        fs::write(at("t.json"), "[]").expect("a file");
        let all = files_of(&at("t.json")).expect("files");
        assert_eq!((all.len(), &all[0]), (4, &at("t.json")));
        assert_eq!(files_of(&at("t.json.2")).expect("files").len(), 2);
        assert_eq!(files_of(&at("none")).expect_err("none").kind(), io::ErrorKind::NotFound);
    }
}
