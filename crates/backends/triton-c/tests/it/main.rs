//! Libraries of C that were compiled against Triton's interface, opened by this program.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod build;
mod libraries;
