//! Folders that are created once and then used by every server of the machine.
//!
//! The files of an environment contain its path, so it cannot be created elsewhere and moved. It is created in place,
//! under a lock, and a marker is written last: a folder without one was left by an interrupted attempt.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use galatea_types::Result;

use super::space;

const MARKER: &str = ".galatea-complete";

/// A folder in the cache.
pub(super) struct Cached<'a> {
    pub root: &'a Path,
    /// A digest of everything that the content depends on.
    pub key: &'a str,
    /// For the log.
    pub what: &'a str,
}

impl Cached<'_> {
    pub fn folder(&self) -> PathBuf {
        self.root.join(self.key)
    }

    /// The folder, created by `create` unless it is there and complete. A lock serializes creations of the same
    /// folder, in this process and others. When `create` fails nothing is left.
    pub fn get(&self, create: &mut dyn FnMut(&Path) -> Result<()>) -> Result<PathBuf> {
        let folder = self.folder();
        if is_complete(&folder) {
            return Ok(folder);
        }
        let not_written = |e: io::Error| space::not_written(self.root, e);
        fs::create_dir_all(self.root).map_err(not_written)?;
        let _lock = self.lock_file().map_err(not_written)?;
        if is_complete(&folder) {
            return Ok(folder);
        }
        remove(&folder).map_err(not_written)?;
        let created =
            create(&folder).and_then(|()| fs::write(folder.join(MARKER), "").map_err(not_written));
        if created.is_err()
            && let Err(e) = remove(&folder)
        {
            log::warn!("cannot remove '{}': {e}", folder.display());
        }
        created.map(|()| folder)
    }

    /// Held until dropped, or until this process dies.
    fn lock_file(&self) -> io::Result<File> {
        let path = self.root.join(format!("{}.lock", self.key));
        let file = File::options().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                log::info!("{}: waiting for another that prepares the same environment", self.what);
                file.lock()?;
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
        Ok(file)
    }
}

/// It has its marker, and the interpreter that its links lead to is still there.
fn is_complete(folder: &Path) -> bool {
    folder.join(MARKER).exists() && root_of(folder).join("bin/python").exists()
}

/// The environment in a folder: the folder itself, or the only one in it, as some archives have it.
pub(super) fn root_of(folder: &Path) -> PathBuf {
    if folder.join("bin").is_dir() {
        return folder.to_owned();
    }
    let Ok(entries) = fs::read_dir(folder) else { return folder.to_owned() };
    let mut roots = entries.flatten().map(|entry| entry.path()).filter(|p| p.join("bin").is_dir());
    match (roots.next(), roots.next()) {
        (Some(only), None) => only,
        _ => folder.to_owned(),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
