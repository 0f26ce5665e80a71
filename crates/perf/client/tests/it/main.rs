//! Tests of the crate from outside, as one program: it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod grpc;
mod http;
mod support;
mod tls;
mod unix;
