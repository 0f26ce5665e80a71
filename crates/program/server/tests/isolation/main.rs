//! Models isolated in processes of their own: the contract of backends, and what becomes of one that ends.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, helpers included"
)]

mod children;
mod conformance;
mod ends;
mod limits;
#[path = "../../../../backends/onnx/tests/it/support/mod.rs"]
mod support;
