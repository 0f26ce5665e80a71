//! Removes folders, and makes errors about writing one, with the free space.

use std::{error, fs, io, path::Path};

use galatea_types::Error;

/// Removes a folder, if it exists.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns an error of writing below `folder`, with the setting that helps.
pub(super) fn not_written(folder: &Path, cause: io::Error) -> Error {
    if is_full(&cause) {
        return disk_full(folder, cause);
    }
    Error::unavailable(format!(
        "cannot write in '{}': {cause}; set GALATEA_HOME to a folder that can be written",
        folder.display()
    ))
    .with_source(cause)
}

/// Returns the error that the file system of `folder`, or the one of temporary files, is full.
pub(super) fn disk_full(folder: &Path, cause: impl error::Error + Send + Sync + 'static) -> Error {
    let temporary = std::env::temp_dir();
    Error::unavailable(format!(
        "no space left: '{}' has {} free, '{}' has {}; make room, or set GALATEA_HOME (and TMPDIR) to a folder with \
         more: {cause}",
        folder.display(),
        size(free(folder)),
        temporary.display(),
        size(free(&temporary))
    ))
    .with_source(cause)
}

/// Returns the free bytes of the file system that holds `path` or, if that does not exist, its nearest parent.
fn free(path: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(path.ancestors().find(|p| p.exists())?).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        None => "an unknown amount".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_full_error_names_folder_and_free_space() {
        let folder = tempfile::tempdir().expect("folder");
        let missing = folder.path().join("python-environments/x");
        let error = not_written(
            &missing,
            io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()),
        );
        let message = error.message();
        assert!(message.starts_with(&format!("no space left: '{}' has ", missing.display())));
        assert!(message.contains(" MB free"), "{message}");
        assert!(message.contains("GALATEA_HOME"), "{message}");
        assert!(message.ends_with("No space left on device (os error 28)"), "{message}");
    }
}
