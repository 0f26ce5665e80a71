//! Model repositories that are not on this machine.
//!
//! [`RemoteFiles`] is what a kind of place has to answer: which models there are, which files a model has, and their
//! bytes. [`RemoteRoot`] makes a repository of it: it fetches the models that are asked for into the cache folder and keeps
//! them there. Object stores are one kind of place ([`object_stores`]).

#![warn(missing_docs)]

mod error;
mod remote_files;

pub use self::{
    error::{FailureKind, RemoteError},
    remote_files::{ByteStream, Checksum, RemoteFile, RemoteFiles},
};
