//! What a kind of place in the network has to answer for models to be served from it.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::RemoteError;

/// The bytes of a file as they come. A failure in the middle is no end: the file is asked for again from there on.
pub type ByteStream = BoxStream<'static, Result<Bytes, RemoteError>>;

/// A file that is being read.
pub struct OpenFile {
    /// From the byte on that was asked for.
    pub bytes: ByteStream,
    /// Of the whole content, where the answer says one.
    pub checksum: Option<Checksum>,
}

/// What the content of a file must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// SHA-256 of the content.
    Sha256([u8; 32]),
    /// MD5 of the content: what object stores have. It finds damage, not malice.
    Md5([u8; 16]),
}

impl Checksum {
    /// The digest itself.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Sha256(digest) => digest,
            Self::Md5(digest) => digest,
        }
    }
}

/// One file there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Below the root of the repository, with `/` between the parts: `model/1/model.onnx`. As the place names it, so that
    /// it may be hostile: `RemoteRoot` checks it before it becomes a path here.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// Changes whenever the content does, e.g. an ETag. Opaque.
    pub version: String,
    /// Of its content, where the place says one.
    pub checksum: Option<Checksum>,
}

/// A place with files. Its methods ask the place each time, and fail when the place does: `RemoteRoot` asks again, checks
/// names, sizes and checksums, and bounds what it takes.
///
/// The futures run on threads of this crate's own runtime.
pub trait RemoteFiles: fmt::Debug + Send + Sync + 'static {
    /// Where it is, as the user gave it, without secrets: its name in texts.
    fn place(&self) -> &str;

    /// What tells its files from those of any other place: two of the same identity have the same files.
    fn identity(&self) -> String;

    /// The model that is one file, named by that and not by its configuration, where that is known by now.
    fn new_name(&self) -> Option<&str> {
        None
    }

    /// Whether it can be read at all.
    fn check(&self) -> impl Future<Output = Result<(), RemoteError>> + Send;

    /// Names of the folders at its root, one for each model, in any order. Fails when there are more than `most`.
    fn folders(&self, most: usize)
    -> impl Future<Output = Result<Vec<String>, RemoteError>> + Send;

    /// Whether there is such a folder at its root.
    fn holds(&self, folder: &str) -> impl Future<Output = Result<bool, RemoteError>> + Send;

    /// All files below one folder at its root, in any order; none where there is no such folder. Fails when there are
    /// more than `most`.
    fn list(
        &self,
        folder: &str,
        most: usize,
    ) -> impl Future<Output = Result<Vec<RemoteFile>, RemoteError>> + Send;

    /// The bytes of a file that was listed, from one on to its end. Fails with
    /// [`FailureKind::Changed`](crate::FailureKind::Changed) when the file is of another version now.
    fn open(
        &self,
        file: &RemoteFile,
        from: u64,
    ) -> impl Future<Output = Result<OpenFile, RemoteError>> + Send;
}
