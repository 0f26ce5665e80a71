//! Errors of writing a folder, with the free space.

use std::{io, path::Path};

use galatea_types::Error;

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// An error of writing below `folder`, with the setting that helps.
pub(super) fn not_written(folder: &Path, error: &io::Error) -> Error {
    if is_full(error) {
        return disk_full(folder, error);
    }
    Error::unavailable(format!(
        "cannot write in '{}': {error}; set GALATEA_HOME to a folder that can be written",
        folder.display()
    ))
}

/// The file system of `folder`, or the one of temporary files, has no room.
pub(super) fn disk_full(folder: &Path, reason: &dyn std::fmt::Display) -> Error {
    let temporary = std::env::temp_dir();
    Error::unavailable(format!(
        "no space left: '{}' has {} free, '{}' has {}; make room, or set GALATEA_HOME (and TMPDIR) to a folder \
         with more: {reason}",
        folder.display(),
        free(folder),
        temporary.display(),
        free(&temporary),
    ))
}

/// Free space of the file system that holds `path` or, while that is not there, its nearest parent.
fn free(path: &Path) -> String {
    match path.ancestors().find(|p| p.exists()).and_then(free_bytes) {
        Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        None => "an unknown amount".to_owned(),
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(path).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_full_disk_names_folder_and_free_space() {
        let folder = tempfile::tempdir().expect("folder");
        let missing = folder.path().join("python-environments/x");
        let error = not_written(
            &missing,
            &io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()),
        );
        let message = error.message();
        assert!(message.starts_with(&format!("no space left: '{}' has ", missing.display())));
        assert!(message.contains(" MB free"), "{message}");
        assert!(message.contains("GALATEA_HOME"), "{message}");
        assert!(message.ends_with("No space left on device (os error 28)"), "{message}");
    }
}
