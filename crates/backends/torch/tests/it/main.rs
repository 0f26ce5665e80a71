//! Tests of the crate from outside, as one program: it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod conformance;
mod divisions;
mod load;
mod packages;
mod ragged;
mod run;
mod support;
