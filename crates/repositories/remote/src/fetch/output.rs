//! The existing part of a file, and the data that is added to it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use md5::Md5;
use sha2::{Sha256, digest::DynDigest};

use crate::{
    cache,
    error::{FailureKind, RemoteError},
    remote_files::Checksum,
};

const BLOCK: usize = 256 << 10;

pub struct Output {
    path: PathBuf,
    file: File,
    /// Bytes in the file.
    pub length: u64,
    /// Bytes of the complete file.
    size: u64,
    expected: Option<Checksum>,
    digest: Option<Box<dyn DynDigest + Send>>,
}

impl Output {
    /// Opens the part that an earlier download left, unless it is complete: its content may be wrong.
    pub fn open(path: &Path, size: u64) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().create(true).read(true).write(true).truncate(false).open(path)?;
        let mut length = file.seek(SeekFrom::End(0))?;
        if length >= size {
            file.set_len(0)?;
            length = file.seek(SeekFrom::Start(0))?;
        }
        Ok(Self { path: path.to_owned(), file, length, size, expected: None, digest: None })
    }

    /// Sets the expected checksum. The first one counts: the response to a request for the rest of a file may have none.
    pub fn expect(&mut self, checksum: Option<Checksum>) -> Result<(), RemoteError> {
        if self.expected.is_some() || checksum.is_none() {
            return Ok(());
        }
        self.expected = checksum;
        self.digest = checksum.map(|checksum| -> Box<dyn DynDigest + Send> {
            match checksum {
                Checksum::Md5(_) => Box::new(Md5::default()),
                Checksum::Sha256(_) => Box::new(Sha256::default()),
            }
        });
        self.digest_start().map_err(|error| self.not_written(&error))
    }

    /// Adds the existing part to the digest.
    fn digest_start(&mut self) -> io::Result<()> {
        let Some(digest) = self.digest.as_mut().filter(|_| self.length > 0) else { return Ok(()) };
        self.file.seek(SeekFrom::Start(0))?;
        let mut block = vec![0; BLOCK];
        let mut left = self.length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let Some(block) = block.get_mut(..most) else { break };
            self.file.read_exact(block)?;
            digest.update(block);
            left -= most as u64;
        }
        self.file.seek(SeekFrom::Start(self.length)).map(drop)
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        let length = self.length + bytes.len() as u64;
        if length > self.size {
            let text = format!("it is longer than its listed {} bytes", self.size);
            return Err(RemoteError::new(FailureKind::Changed, text));
        }
        self.file.write_all(bytes).map_err(|error| self.not_written(&error))?;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        self.length = length;
        Ok(())
    }

    /// Checks the complete file after the last byte.
    pub fn check_whole(&mut self) -> Result<(), RemoteError> {
        if self.length < self.size {
            let text = format!("the answer ended at byte {} of {}", self.length, self.size);
            return Err(RemoteError::new(FailureKind::Unavailable, text));
        }
        let found = self.digest.as_mut().map(|digest| digest.finalize_reset());
        match found.zip(self.expected) {
            Some((found, expected)) if *found != *expected.bytes() => {
                let text = "the bytes do not fit its checksum: the file was damaged on the way, or is not the one \
                            that was uploaded";
                Err(RemoteError::new(FailureKind::Invalid, text))
            }
            _ => Ok(()),
        }
    }

    /// Removes a part that cannot be used.
    pub fn discard(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn not_written(&self, error: &io::Error) -> RemoteError {
        cache::not_written(self.path.parent().unwrap_or(&self.path), error)
    }
}
