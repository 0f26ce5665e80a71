//! Locks on entries, between threads and processes: a process that dies lets go of its own.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To use what is there.
    Shared,
    /// To make or remove it.
    Alone,
}

/// Waits for the lock; `on_wait` is called when somebody else has it. Whoever has it is making the entry, which ends: every
/// step of that has a time limit.
pub fn acquire(path: &Path, access: Access, on_wait: &mut dyn FnMut()) -> io::Result<File> {
    loop {
        let file = open(path)?;
        if try_lock(&file, access)?.is_none() {
            on_wait();
            wait(&file, access)?;
        }
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// The lock to remove the entry. `None`: somebody uses it.
pub fn acquire_idle(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    let is_idle = try_lock(&file, Access::Alone)?.is_some();
    Ok((is_idle && is_at(&file, path)).then_some(file))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(path)
}

fn try_lock(file: &File, access: Access) -> io::Result<Option<()>> {
    let taken = match access {
        Access::Shared => file.try_lock_shared(),
        Access::Alone => file.try_lock(),
    };
    match taken {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn wait(file: &File, access: Access) -> io::Result<()> {
    loop {
        let taken = match access {
            Access::Shared => file.lock_shared(),
            Access::Alone => file.lock(),
        };
        match taken {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whoever removed the entry has removed the file of its lock too: a lock on a file that is gone keeps nobody out.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}
