//! Locks on files, between threads and processes. The kernel releases those of a process that dies.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt as _},
    path::Path,
};

/// The kinds of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Excludes only those who want to be alone.
    Shared,
    /// Excludes everybody.
    Alone,
}

/// Takes the lock of the file at `path`, which is created if missing. Returns `None` if another holds it.
///
/// # Errors
/// When the file cannot be opened or locked.
pub fn try_lock(path: &Path, kind: LockKind) -> io::Result<Option<File>> {
    loop {
        // NFS gives a shared lock only to a file that is open for reading. Nobody else may open the file and hold its lock.
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        let locked = match kind {
            LockKind::Shared => file.try_lock_shared(),
            LockKind::Alone => file.try_lock(),
        };
        match locked {
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            // The file was removed before it was locked, so nobody else would find this lock.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Returns true if the file is still there. Otherwise it was removed, and there may be another in its place.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_lock_belongs_to_the_file_at_the_path() {
        let folder = std::env::temp_dir().join(format!("galatea-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("lock");
        let lock = |kind| try_lock(&path, kind).expect("opened");
        let shared = [lock(LockKind::Shared), lock(LockKind::Shared)];
        assert!(shared.iter().all(Option::is_some) && lock(LockKind::Alone).is_none());
        drop(shared);
        let mut alone = lock(LockKind::Alone).expect("nobody holds it");
        assert_eq!(alone.read(&mut [0]).expect("open for reading"), 0);
        assert_eq!(alone.metadata().expect("looked at").mode() & 0o777, 0o600);
        assert!(lock(LockKind::Shared).is_none());
        fs::remove_file(&path).expect("removed");
        assert!(!is_at(&alone, &path).expect("looked at"));
        assert!(lock(LockKind::Alone).is_some(), "another file");
        assert!(!is_at(&alone, &path).expect("looked at"));
        fs::remove_dir_all(folder).expect("removed");
    }
}
