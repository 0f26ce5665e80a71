//! Ensembles against models that are closures. Nothing sleeps: tests decide who answers when.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, helpers included"
)]

mod failures;
mod flow;
mod limits;
mod random;
mod rig;
mod streams;
