//! The response cache: responses to earlier requests, and keys to find them for equal requests.
//!
//! # Invariants
//! - A key covers all parts of a request that may change its response. Two requests that differ have different keys.
//! - The cache in memory never holds more bytes than its limit, with the memory to manage them.
//! - No look-up or insertion blocks its caller: longer work runs on the cache's own threads and is bounded in time.
//! - Data from another server is checked before it becomes a response.

#![warn(missing_docs)]

mod cache;
mod entry;
mod key;
mod local;
mod long_work;
mod redis;
mod wire;

pub use self::{
    cache::{Insertion, LookUp, OnLookUp, Refusal, ResponseCache},
    entry::Entry,
    key::{CacheKey, Scope},
    local::LocalCache,
    long_work::{Job, LongWork},
    redis::{
        OpenError, RedisCache, RedisReply, RedisSettings, SettingsError, TlsSettings,
        read_redis_reply,
    },
    wire::{DecodeError, decode, encode},
};
