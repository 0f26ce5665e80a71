//! The interface that takes the requests of a model.

use std::time::Instant;

use galatea_types::{PreparedRequest, Refused, RequestContext, Responder, Result};

/// The receiver of the requests of one model version.
pub trait Scheduler: Send + Sync {
    /// Takes a request. Its result is counted and comes through `responder`.
    ///
    /// # Errors
    /// [`Refused`] if the request is not taken: the scheduler is closed, its queue is full, or no instance works that could
    /// execute it. A refusal is counted as a failure here.
    fn submit(
        &self,
        request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused>;

    /// Returns the number of requests queued, executing and streaming.
    fn in_flight(&self) -> usize;

    /// Answers waiting requests whose clients have gone, so that their memory is free before their turn comes. Returns the
    /// number of these requests.
    fn release_abandoned(&self) -> usize;

    /// Waits until nothing is in flight, while requests are still accepted; returns false if something is at `deadline`.
    fn wait_until_idle(&self, deadline: Instant) -> bool;

    /// Declares that new requests go elsewhere, except those on their way. A sequence without waiting requests
    /// will not continue, so its place goes to a sequence that waits for one.
    fn expect_no_more(&self);

    /// Refuses new requests from now on. Queued ones are still answered.
    fn close(&self);

    /// Closes, and waits until every request is answered and every thread has ended; returns false if that is not so by
    /// `deadline`.
    fn drain(&self, deadline: Instant) -> bool;
}
