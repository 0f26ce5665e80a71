//! What the lines are written to.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::AccessTarget;

/// What the lines are written to.
#[derive(Debug)]
pub(super) enum Target {
    Stdout,
    File { path: PathBuf, file: File },
}

impl Target {
    pub fn open(target: &AccessTarget) -> io::Result<Self> {
        Ok(match target {
            AccessTarget::Stdout => Self::Stdout,
            AccessTarget::File(path) => Self::File { file: append_to(path)?, path: path.clone() },
        })
    }

    /// Writes whole lines, so that none of another writer comes between.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush())
            }
            Self::File { file, .. } => file.write_all(lines),
        }
    }

    /// Opens the file by its name again; what was open stays where that fails.
    pub fn reopen(&mut self) {
        let Self::File { path, file } = self else { return };
        match append_to(path) {
            Ok(opened) => *file = opened,
            Err(error) => {
                log::error!("failed to open the access log '{}' again: {error}", path.display());
            }
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
