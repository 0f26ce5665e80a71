//! Libraries of C that were compiled against Triton's interface, opened by this program.

#![cfg(target_os = "linux")]

mod build;
mod libraries;
