//! Tests of the crate from outside, as one program: it is linked once.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod calls;
mod conformance;
mod lifecycle;
mod misuse;
mod support;
