//! Model repositories that are not on this machine.
//!
//! [`RemoteFiles`] is what a kind of place has to answer: which models there are, which files a model has, and their
//! bytes. [`RemoteRoot`] makes a repository of it: it fetches the models that are asked for into the cache folder and keeps
//! them there. Object stores are one kind of place ([`object_stores`]).

#![warn(missing_docs)]

mod address;
pub mod archive;
mod cache;
mod error;
mod fetch;
mod hex;
pub mod hub;
mod listings;
mod names;
mod network;
pub mod object_stores;
mod reach;
mod remote_files;
mod remote_root;
mod retry;
#[cfg(test)]
mod tests;
mod web;

pub use self::{
    address::{Address, Service, parse as parse_address},
    cache::{Cache, CacheKey, CacheLease, CacheLimit},
    error::{FailureKind, RemoteError},
    network::client,
    remote_files::{ByteStream, Checksum, OpenFile, RemoteFile, RemoteFiles},
    remote_root::RemoteRoot,
};
