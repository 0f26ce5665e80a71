//! The synchronization types of the response queue. The model check includes the queue a second time, with its own types.

pub(super) use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

pub(super) use galatea_types::LockExt;
