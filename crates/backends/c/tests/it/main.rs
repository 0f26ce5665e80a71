//! Tests of the crate from outside, as one program: it is linked once.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod calls;
mod conformance;
#[cfg(all(target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod exceptions;
mod lifecycle;
mod misuse;
mod support;
