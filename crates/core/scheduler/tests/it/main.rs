//! The scheduler with real threads. Nothing sleeps: tests wait for what they want to see.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, helpers included"
)]

mod abandoned;
mod alarms;
mod answers;
mod batching;
mod changes;
mod failure_log;
mod in_place;
mod life;
mod pipe;
mod pipeline;
mod probe;
mod states;
mod streams;
mod stress;
mod time_outs;
mod traces;
mod warm_up;
