//! One traced request: a small record, so that a million of them fit into memory.

use crate::event::{Event, Protocol};

/// A version of a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelKey {
    /// The name of the model.
    pub name: Box<str>,
    /// The version; empty if it is not known.
    pub version: Box<str>,
}

/// A traced request: a client's, a step of an ensemble, or a call of a model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The server's number of the trace.
    pub id: u64,
    /// The client's name of the request.
    pub request_id: Option<Box<str>>,
    /// The trace that this one is a part of, as the file has it.
    pub parent_id: Option<u64>,
    /// Index of that request; `None` if the file does not have it.
    pub parent: Option<u32>,
    /// Index of the model; `None` if the request reached none.
    pub model: Option<u32>,
    /// The protocol by which it came; `None` for steps and calls.
    pub protocol: Option<Protocol>,
    /// Number of responses.
    pub responses: u32,
    /// The server answered with an error. Files do not have this.
    pub is_failed: bool,
    /// Instants in nanoseconds, by event; 0 for those that did not happen.
    instants: [u64; Event::ALL.len()],
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered.
    Answered,
    /// The server answered with an error.
    Failed,
    /// A step or a call ended. Its answer went to the request above it.
    Ended,
    /// The request ended without a response: it was cancelled.
    NoResponse,
    /// The request was refused before a model's queue.
    NotQueued,
    /// The file has no end of the request.
    Unfinished,
}

impl Outcome {
    /// Returns the words that people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Ended => "ended",
            Self::NoResponse => "no response",
            Self::NotQueued => "not queued",
            Self::Unfinished => "unfinished",
        }
    }
}

impl Request {
    /// Makes the record of a trace of this number.
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Records an event. A stream sends many responses: the first start and the last end count.
    pub fn record(&mut self, event: Event, ns: u64) {
        if event == Event::ResponseComplete {
            self.responses = self.responses.saturating_add(1);
        }
        let instant = &mut self.instants[event as usize];
        *instant = match *instant {
            0 => ns,
            known if event.is_start() && ns > 0 => known.min(ns),
            known if event.is_start() => known,
            known => known.max(ns),
        };
    }

    /// Returns the instant of an event.
    pub fn instant(&self, event: Event) -> Option<u64> {
        Some(self.instants[event as usize]).filter(|&ns| ns > 0)
    }

    /// Returns the first and the last instant.
    pub fn extent(&self) -> Option<Extent> {
        let happened = || self.instants.iter().copied().filter(|&ns| ns > 0);
        Some(Extent { from: happened().min()?, to: happened().max()? })
    }

    /// Returns the time from the first to the last event, in nanoseconds.
    pub fn total(&self) -> u64 {
        self.extent().map_or(0, |extent| extent.length())
    }

    /// Returns the end of the request, as its events and its answer tell it.
    pub fn outcome(&self) -> Outcome {
        let has = |event| self.instant(event).is_some();
        match self.responses {
            _ if self.is_failed => Outcome::Failed,
            _ if !has(Event::RequestStart) => Outcome::NotQueued,
            _ if !has(Event::RequestEnd) => Outcome::Unfinished,
            // Servers record only the responses to clients.
            0 if self.parent_id.is_some() => Outcome::Ended,
            0 => Outcome::NoResponse,
            _ => Outcome::Answered,
        }
    }
}

/// A piece of time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its beginning.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl Extent {
    /// Returns the nanoseconds between the ends.
    pub fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns the smallest extent that holds both.
    pub fn joined(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}
