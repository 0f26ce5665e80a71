//! The digest of a file while it comes.

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::remote_files::Checksum;

/// Of the kind that the file is to be compared with.
#[derive(Clone, Debug)]
pub enum FileDigest {
    Md5(Md5),
    Sha256(Sha256),
}

impl FileDigest {
    pub fn of_kind(checksum: Checksum) -> Self {
        match checksum {
            Checksum::Md5(_) => Self::Md5(Md5::new()),
            Checksum::Sha256(_) => Self::Sha256(Sha256::new()),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(digest) => digest.update(bytes),
            Self::Sha256(digest) => digest.update(bytes),
        }
    }

    pub fn is(&self, checksum: Checksum) -> bool {
        match (self, checksum) {
            (Self::Md5(digest), Checksum::Md5(expected)) => digest.clone().finalize() == expected,
            (Self::Sha256(digest), Checksum::Sha256(expected)) => {
                digest.clone().finalize() == expected
            }
            _ => false,
        }
    }
}
