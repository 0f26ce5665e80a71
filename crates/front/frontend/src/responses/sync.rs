//! What threads of the response queue meet at. The model check includes the queue a second time, with its own.

pub(super) use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

pub(super) use galatea_types::LockExt;
