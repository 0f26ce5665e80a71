//! The destination of finished traces.

use std::fmt;

use crate::{
    request_trace::{RequestTrace, TracePlace},
    trace_memory::MemoryShare,
};

/// A finished trace: a client's request and the requests that it caused.
#[derive(Debug)]
pub struct FinishedTrace {
    /// The number of the setting that chose the request.
    pub setting: u64,
    /// Traces in a file; 0: all go to one file.
    pub log_frequency: u32,
    /// The traces of this setting belong together until its count is used up.
    pub is_counted: bool,
    /// The last trace of a count.
    pub is_last_of_count: bool,
    /// The requests, in the order of their start; the client's first.
    pub requests: Vec<RequestTrace>,
    /// The place in a distributed trace; `None` in mode `triton`.
    pub place: Option<TracePlace>,
    /// The requests are traced with their events, and not for their tensors alone.
    pub has_timestamps: bool,
    /// The reason why the front end answered with an error; kept only for a distributed trace.
    pub failure: Option<Box<str>>,
    /// The share of the memory for traces, until this is written.
    pub held: MemoryShare,
}

/// Takes finished traces. Its calls come from threads that answer requests: they must be short.
pub trait TraceSink: fmt::Debug + Send + Sync {
    /// Takes a finished trace.
    fn finished(&self, trace: FinishedTrace);

    /// Learns that a setting of this number has no more traces.
    fn retired(&self, setting: u64);

    /// Learns that a trace was lost, because those that wait take all the memory for traces.
    fn lost(&self);

    /// Returns the number of traces that it could not write.
    fn unwritten(&self) -> u64 {
        0
    }

    /// Writes everything that it has, and takes nothing more. Waits for that, but not long.
    fn close(&self);
}

/// The sink of a server without a destination.
#[derive(Debug)]
pub(crate) struct Unwritten;

impl TraceSink for Unwritten {
    fn finished(&self, _: FinishedTrace) {}

    fn retired(&self, _: u64) {}

    fn lost(&self) {}

    fn close(&self) {}
}
