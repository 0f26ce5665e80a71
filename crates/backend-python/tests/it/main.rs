//! Python models with a real interpreter. See `common::python` for which one.

mod calls;
mod common;
mod completion;
mod conformance;
mod deaths;
mod executions;
mod starts;
mod streams;
