//! Errors of writing a folder, with the free space.

use std::{
    error, io,
    path::{Path, PathBuf},
};

use galatea_types::Error;

/// Why a folder was not written.
#[derive(Debug, thiserror::Error)]
enum SpaceError {
    #[error(
        "cannot write in '{}': {cause}; set GALATEA_HOME to a folder that can be written",
        folder.display()
    )]
    NotWritten {
        folder: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error(
        "no space left: '{}' has {} free, '{}' has {}; make room, or set GALATEA_HOME (and TMPDIR) to a folder with \
         more: {cause}",
        folder.display(),
        size(*free),
        temporary.display(),
        size(*temporary_free)
    )]
    Full {
        folder: PathBuf,
        /// Bytes, where that is known.
        free: Option<u64>,
        /// The folder of temporary files.
        temporary: PathBuf,
        temporary_free: Option<u64>,
        #[source]
        cause: Box<dyn error::Error + Send + Sync>,
    },
}

impl From<SpaceError> for Error {
    fn from(error: SpaceError) -> Self {
        Error::unavailable(error.to_string()).with_source(error)
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// An error of writing below `folder`, with the setting that helps.
pub(super) fn not_written(folder: &Path, cause: io::Error) -> Error {
    if is_full(&cause) {
        return disk_full(folder, cause);
    }
    SpaceError::NotWritten { folder: folder.to_path_buf(), cause }.into()
}

/// The file system of `folder`, or the one of temporary files, has no room.
pub(super) fn disk_full(
    folder: &Path,
    cause: impl Into<Box<dyn error::Error + Send + Sync>>,
) -> Error {
    let temporary = std::env::temp_dir();
    let (free, temporary_free) = (free(folder), free(&temporary));
    let (folder, cause) = (folder.to_path_buf(), cause.into());
    SpaceError::Full { folder, free, temporary, temporary_free, cause }.into()
}

/// Free space of the file system that holds `path` or, while that is not there, its nearest parent.
fn free(path: &Path) -> Option<u64> {
    path.ancestors().find(|p| p.exists()).and_then(free_bytes)
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
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
            io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()),
        );
        let message = error.message();
        assert!(message.starts_with(&format!("no space left: '{}' has ", missing.display())));
        assert!(message.contains(" MB free"), "{message}");
        assert!(message.contains("GALATEA_HOME"), "{message}");
        assert!(message.ends_with("No space left on device (os error 28)"), "{message}");
    }
}
