//! The interface of a remote place from which models are served.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::RemoteError;

/// The bytes of a file during its download. After a failure the rest is requested from that byte on.
pub type ByteStream = BoxStream<'static, Result<Bytes, RemoteError>>;

/// A file that is being read.
pub struct OpenFile {
    /// Bytes from the requested one on.
    pub bytes: ByteStream,
    /// Checksum of the whole content, if the response has one.
    pub checksum: Option<Checksum>,
}

/// The checksum that the content of a file must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// SHA-256 of the content.
    Sha256([u8; 32]),
    /// MD5 of the content, which object stores have. It finds damage, but no malice.
    Md5([u8; 16]),
}

impl Checksum {
    /// Returns the bytes of the digest.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Sha256(digest) => digest,
            Self::Md5(digest) => digest,
        }
    }
}

/// One file of the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path below the root of the repository, with `/` between the parts: `model/1/model.onnx`. The place chooses it, so it
    /// may be hostile: `RemoteRoot` checks it before it becomes a path here.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Opaque text that changes whenever the content does, e.g. an ETag.
    pub version: String,
    /// Checksum of its content, if the place has one.
    pub checksum: Option<Checksum>,
}

/// A place with files. Its methods ask the place each time, and fail when the place does. `RemoteRoot` repeats requests,
/// checks names, sizes and checksums, and limits how much it reads.
///
/// The futures run on threads of this crate's own runtime.
pub trait RemoteFiles: fmt::Debug + Send + Sync + 'static {
    /// Returns the address as the user gave it, without secrets. It names the place in messages.
    fn place(&self) -> &str;

    /// Returns a text that distinguishes its files from those of any other place. Places with the same one have the same
    /// files.
    fn identity(&self) -> String;

    /// Returns the name of a model that is one file and takes its name from that, if it is known already.
    fn new_name(&self) -> Option<&str> {
        None
    }

    /// Checks that the place can be read at all.
    fn check(&self) -> impl Future<Output = Result<(), RemoteError>> + Send;

    /// Returns the names of the folders at its root, one for each model, in any order. Fails if there are more than `most`.
    fn folders(&self, most: usize)
    -> impl Future<Output = Result<Vec<String>, RemoteError>> + Send;

    /// Returns true if its root contains the folder.
    fn holds(&self, folder: &str) -> impl Future<Output = Result<bool, RemoteError>> + Send;

    /// Lists all files below one folder at its root, in any order, or none if it does not exist. Fails if there are more
    /// than `most`.
    fn list(
        &self,
        folder: &str,
        most: usize,
    ) -> impl Future<Output = Result<Vec<RemoteFile>, RemoteError>> + Send;

    /// Requests the bytes of a listed file, from one on to its end. Fails with
    /// [`FailureKind::Changed`](crate::FailureKind::Changed) if the file has another version now.
    fn open(
        &self,
        file: &RemoteFile,
        from: u64,
    ) -> impl Future<Output = Result<OpenFile, RemoteError>> + Send;
}
