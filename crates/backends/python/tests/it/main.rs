//! Python models with a real interpreter. See `common::python` for which one.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

mod bls;
mod common;
mod completion;
mod conformance;
mod executions;
mod pipeline;
mod starts;
mod streams;
mod watchdog;
mod worker_exits;
