//! A folder without the secrets below it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A file or folder that rules are made for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// A path with all that is below it.
    Whole(PathBuf),
    /// A folder that may only be listed, because something in it is left out.
    Names(PathBuf),
}

/// Most entries of one folder that are read.
const MOST_ENTRIES: usize = 65_536;

/// Splits `root` into pieces without the `secrets` in it. The only piece is `root` itself if nothing below it is secret.
/// Links are left out: the kernel checks the file they lead to.
///
/// # Errors
/// When a folder on the way cannot be listed.
pub(super) fn without(root: &Path, secrets: &[PathBuf]) -> io::Result<Vec<Piece>> {
    let root = fs::canonicalize(root)?;
    let mut pieces = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(path) = open.pop() {
        // A secret that `root` itself names is kept: it was asked for by its name.
        if path != root && secrets.contains(&path) {
            continue;
        }
        if !secrets.iter().any(|secret| *secret != path && secret.starts_with(&path)) {
            pieces.push(Piece::Whole(path));
            continue;
        }
        for entry in fs::read_dir(&path)?.take(MOST_ENTRIES) {
            let entry = entry?;
            if !entry.file_type()?.is_symlink() {
                open.push(entry.path());
            }
        }
        pieces.push(Piece::Names(path));
    }
    Ok(pieces)
}

/// Returns the paths as they are named, and as their links resolve.
pub(super) fn with_targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let targets = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
    targets.chain(paths.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("folder");
        let root = fs::canonicalize(folder.path()).expect("there");
        fs::create_dir_all(root.join("a/keys")).expect("made");
        fs::create_dir_all(root.join("b")).expect("made");
        fs::write(root.join("a/open"), "").expect("written");
        fs::write(root.join("a/keys/private"), "").expect("written");
        (folder, root)
    }

    #[test]
    fn a_folder_without_secrets_is_allowed_whole() {
        let (_folder, root) = folder();
        let elsewhere = [PathBuf::from("/elsewhere"), root.with_extension("beside")];
        assert_eq!(without(&root, &elsewhere).expect("pieces"), [Piece::Whole(root)]);
    }

    #[test]
    fn files_beside_a_secret_stay_readable() {
        let (_folder, root) = folder();
        symlink(root.join("a/keys"), root.join("a/link")).expect("linked");
        let mut pieces = without(&root, &[root.join("a/keys")]).expect("pieces");
        pieces.sort();
        let whole = [root.join("a/open"), root.join("b")].map(Piece::Whole);
        let names = [root.clone(), root.join("a")].map(Piece::Names);
        assert_eq!(pieces, [whole, names].concat());
    }

    #[test]
    fn an_explicitly_listed_secret_is_readable() {
        let (_folder, root) = folder();
        let keys = root.join("a/keys");
        let pieces = without(&keys, std::slice::from_ref(&keys)).expect("pieces");
        assert_eq!(pieces, [Piece::Whole(keys)]);
    }

    #[test]
    fn a_secret_link_protects_link_and_target() {
        let (_folder, root) = folder();
        let link = root.join("link");
        symlink(root.join("a/keys"), &link).expect("linked");
        assert_eq!(with_targets(std::slice::from_ref(&link)), [root.join("a/keys"), link]);
    }
}
