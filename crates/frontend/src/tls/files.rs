//! Reading the files of certificates and keys, and noticing that they have changed.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
    time::SystemTime,
};

use super::{TlsError, TlsFiles};

/// Longest file that is read. A bundle of all public authorities has some 300 KB.
const MOST_BYTES: u64 = 4 << 20;

/// The content of a file.
pub fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::Unreadable { file: file.to_owned(), error };
    let opened = File::open(file).map_err(unreadable)?;
    let mut content = Vec::new();
    // One byte more than may be: a file without a length (a pipe, a device) is cut off as well.
    opened.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(TlsError::TooLong { file: file.to_owned(), most: MOST_BYTES });
    }
    Ok(content)
}

/// What tells that files are others than before: links are followed, so that a link that is put in the place of another, as
/// Kubernetes renews secrets, is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp([Option<FileStamp>; 3]);

/// Where it lies, how long it is, when it was written.
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
