//! Model repositories on other machines.
//!
//! [`RemoteFiles`] is the interface of a kind of place: its models, the files of a model, and their bytes. [`RemoteRoot`]
//! makes a repository of it: it fetches requested models into the cache folder and keeps them there. Object stores are one
//! kind of place ([`object_stores`]).

#![warn(missing_docs)]

mod address;
pub mod archive;
mod cache;
mod error;
mod fetch;
mod hex;
pub mod hub;
mod last_contact;
mod listings;
mod names;
mod network;
pub mod object_stores;
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
