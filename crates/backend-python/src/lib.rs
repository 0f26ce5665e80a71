//! Runs Python models, each instance in a process of its own.

pub mod environment;
