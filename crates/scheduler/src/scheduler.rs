//! What takes the requests of a model.

use std::time::Instant;

use galatea_types::{InferRequest, Refused, Responder, Result};

/// What takes the requests of one model version.
pub trait Scheduler: Send + Sync {
    /// Takes a request. What became of it comes through `responder`, and is counted.
    ///
    /// # Errors
    /// [`Refused`] when the request is not taken: the scheduler is closed, its queue is full, or nothing works
    /// that could execute it. That is counted as a failure here.
    fn submit(&self, request: InferRequest, responder: Responder) -> Result<(), Refused>;

    /// Requests queued, executing and streaming.
    fn in_flight(&self) -> usize;

    /// Waits until nothing is in flight, while requests are still accepted; false when that is not so by
    /// `deadline`.
    fn wait_until_idle(&self, deadline: Instant) -> bool;

    /// Refuses new requests from now on (S-24). What is queued is still answered.
    fn close(&self);

    /// Closes, and waits until everything is answered and every thread has ended; false when that is not
    /// so by `deadline`.
    fn drain(&self, deadline: Instant) -> bool;

    /// Whether a request would be executed: something is there that works.
    fn is_ready(&self) -> bool;

    /// Whether the model has a say of its own in its readiness; most have not.
    fn has_readiness_check(&self) -> bool {
        false
    }

    /// The model's own say, asked only when it has one. May block as long as the model takes to answer.
    fn model_is_ready(&self) -> bool {
        true
    }
}
