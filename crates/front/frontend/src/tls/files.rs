//! Reads the files of certificates and keys, and notices when they change.

use std::{fs, io::ErrorKind, os::unix::fs::MetadataExt, path::Path, time::SystemTime};

use super::{TlsError, TlsFiles};

/// The longest file that is read, in bytes. A bundle of all public authorities has some 300 KB.
const MOST_BYTES: u64 = 4 << 20;

pub fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    galatea_regular_files::read(file, MOST_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => TlsError::TooLong { file: file.to_owned(), most: MOST_BYTES },
        _ => TlsError::Unreadable { file: file.to_owned(), error },
    })
}

/// A stamp that shows when files were replaced. It follows links, because Kubernetes renews secrets by replacing a
/// link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp([Option<FileStamp>; 3]);

/// Device, inode, length and modification time of a file.
type FileStamp = (u64, u64, u64, Option<SystemTime>);

impl Stamp {
    pub fn of(files: &TlsFiles) -> Self {
        let TlsFiles { certificates, key, client_roots } = files;
        Self([stamp(certificates), stamp(key), client_roots.as_deref().and_then(stamp)])
    }
}

fn stamp(file: &Path) -> Option<FileStamp> {
    let about = fs::metadata(file).ok()?;
    Some((about.dev(), about.ino(), about.len(), about.modified().ok()))
}
