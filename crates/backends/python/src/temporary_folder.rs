//! The folder for temporary files of an isolated model. It is removed whatever the model has left in it.

use std::{
    ffi::{CString, OsString},
    fs::Permissions,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    sync::Once,
};

use galatea_types::{Error, Result};
use rustix::{
    fs::{
        AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, lstat, openat, renameat,
        unlinkat,
    },
    io::Errno,
};

/// A folder that only the server's user may read. It is removed when this is dropped. The next server removes a folder that
/// a killed one left: nobody holds its lock.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
    _lock: OwnedFd,
}

const PREFIX: &str = "galatea-model-";
/// Attempts to create a folder. Until it is locked, another server may take it for a leftover.
const TRIES: usize = 8;

impl TemporaryFolder {
    /// Creates a folder below the server's folder for temporary files.
    pub fn create() -> Result<Self> {
        static LEFT: Once = Once::new();
        LEFT.call_once(|| remove_left(&std::env::temp_dir()));
        let folder = (0..TRIES).find_map(|_| try_create().transpose());
        let folder = folder.unwrap_or_else(|| Err(io::Error::other("other processes remove it")));
        folder.map_err(|error| {
            let text = format!("no folder for a model's temporary files: {error}");
            Error::unavailable(text).with_source(error)
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the variables that name the folder to libraries, and to PyTorch for the code that it compiles.
    pub fn variables(&self) -> [(OsString, OsString); 3] {
        ["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), self.path.clone().into()))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            log::warn!("cannot remove the temporary folder '{}': {error}", self.path.display());
        }
    }
}

/// Tries to create a folder. Returns `None` if another process locked it first.
fn try_create() -> io::Result<Option<TemporaryFolder>> {
    let mode = Permissions::from_mode(0o700);
    let created = tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempdir()?;
    let path = created.keep();
    Ok(lock(&path).map(|lock| TemporaryFolder { path, _lock: lock }))
}

/// Locks a folder. Returns `None` if another holds the lock, or the folder is gone.
fn lock(path: &Path) -> Option<OwnedFd> {
    let folder = open_folder(CWD, path).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (ours, there) = (fstat(&folder).ok()?, lstat(path).ok()?);
    ((ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)).then_some(folder)
}

/// Most entries of the folder for temporary files that are checked.
const MOST_LOOKED_AT: usize = 65_536;

/// Removes the folders that killed servers of this user have left.
fn remove_left(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().take(MOST_LOOKED_AT);
    for entry in entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    {
        let path = entry.path();
        let is_own = lstat(&path).is_ok_and(|found| found.st_uid == user);
        let Some(_lock) = lock(&path).filter(|_| is_own) else { continue };
        match remove(&path) {
            Ok(()) => log::info!("removed '{}', which a killed server has left", path.display()),
            Err(error) => log::warn!("cannot remove '{}': {error}", path.display()),
        }
    }
}

/// Most entries that are removed with one temporary folder: a model may have made more files than anybody wants to wait for.
const MOST_ENTRIES: usize = 10_000_000;

/// Removes a folder. It follows no link, and folders may be nested to any depth. Each is moved up before it is emptied, so
/// that neither stack nor descriptors grow with the depth.
fn remove(path: &Path) -> io::Result<()> {
    let root = open_folder(CWD, path)?;
    let mut seen = 0;
    loop {
        let names = names(root.as_fd())?;
        if names.is_empty() {
            return std::fs::remove_dir(path);
        }
        for name in names {
            count(&mut seen)?;
            if unlink(root.as_fd(), &name)? {
                continue;
            }
            empty(root.as_fd(), &name, &mut seen)?;
            match unlinkat(&root, &name, AtFlags::REMOVEDIR) {
                // The folder has more entries than were read, so it is emptied again later.
                Ok(()) | Err(Errno::NOTEMPTY | Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Empties the folder `name`: removes its files and moves its folders up into `root`, each under the next free number.
fn empty(root: BorrowedFd<'_>, name: &CString, seen: &mut usize) -> io::Result<()> {
    let folder = open_folder(root, name)?;
    for inner in names(folder.as_fd())? {
        count(seen)?;
        if unlink(folder.as_fd(), &inner)? {
            continue;
        }
        loop {
            match renameat(&folder, &inner, root, format!("moved-{seen}")) {
                Ok(()) => break,
                // The model itself made an entry of that name.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => count(seen)?,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn count(seen: &mut usize) -> io::Result<()> {
    *seen += 1;
    match *seen > MOST_ENTRIES {
        true => Err(io::Error::other("there are too many files in it")),
        false => Ok(()),
    }
}

/// Removes a file. Returns false if it is a folder.
fn unlink(folder: BorrowedFd<'_>, name: &CString) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn open_folder(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

/// Returns names in a folder, a bounded number at once to save memory.
fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    const AT_ONCE: usize = 10_000;
    let entries = Dir::read_from(folder)?;
    let names = entries.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(error) => Some(Err(error.into())),
    });
    names.take(AT_ONCE).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn everything_is_removed_and_links_are_not_followed() {
        let outside = tempfile::tempdir().expect("folder");
        fs::write(outside.path().join("kept"), "").expect("written");
        let folder = TemporaryFolder::create().expect("created");
        let path = folder.path().to_owned();
        fs::create_dir_all(path.join("a/b/c")).expect("made");
        fs::write(path.join("a/b/c/file"), "").expect("written");
        // Names that the removal would choose, as files and as folders.
        for number in 0..20 {
            let name = format!("moved-{number}");
            match number % 2 {
                0 => fs::write(path.join(name), "").expect("written"),
                _ => fs::create_dir_all(path.join(name).join("moved-3/moved-5")).expect("made"),
            }
        }
        for place in ["link", "a/link", "a/b/link"] {
            symlink(outside.path(), path.join(place)).expect("linked");
        }
        drop(folder);
        assert!(!path.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn leftovers_of_killed_servers_are_removed_unless_in_use() {
        let parent = tempfile::tempdir().expect("folder");
        let made = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir_all(path.join("inner")).expect("made");
            path
        };
        let (left, used) = (made("galatea-model-left"), made("galatea-model-used"));
        let (other, outside) = (made("other-left"), made("outside"));
        symlink(&outside, parent.path().join("galatea-model-link")).expect("linked");
        let _lock = lock(&used).expect("locked");
        remove_left(parent.path());
        assert!(!left.exists());
        assert!(used.exists() && other.exists() && outside.join("inner").exists());
    }

    #[test]
    fn very_deeply_nested_folders_are_removed() {
        let folder = TemporaryFolder::create().expect("created");
        let path = folder.path().to_owned();
        let mut inner = open_folder(CWD, &path).expect("opened");
        for _ in 0..5_000 {
            mkdirat(&inner, "d", Mode::RWXU).expect("made");
            inner = open_folder(&inner, "d").expect("opened");
        }
        drop(folder);
        assert!(!path.exists());
    }
}
