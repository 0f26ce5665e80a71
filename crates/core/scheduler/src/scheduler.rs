//! What takes the requests of a model.

use std::time::Instant;

use galatea_types::{PreparedRequest, Refused, RequestContext, Responder, Result};

/// What takes the requests of one model version.
pub trait Scheduler: Send + Sync {
    /// Takes a request. What became of it comes through `responder`, and is counted.
    ///
    /// # Errors
    /// [`Refused`] when the request is not taken: the scheduler is closed, its queue is full, or nothing works
    /// that could execute it. That is counted as a failure here.
    fn submit(
        &self,
        request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused>;

    /// Requests queued, executing and streaming.
    fn in_flight(&self) -> usize;

    /// Answers the requests that wait and that nobody waits for any more, so that the memory they hold is free before
    /// their turn comes. Returns how many there were.
    fn release_abandoned(&self) -> usize;

    /// Waits until nothing is in flight, while requests are still accepted; false when that is not so by
    /// `deadline`.
    fn wait_until_idle(&self, deadline: Instant) -> bool;

    /// New requests go elsewhere from now on, but for those that are on their way: no sequence of which nothing waits will go
    /// on, so each gives way to those that wait for its place.
    fn expect_no_more(&self);

    /// Refuses new requests from now on. What is queued is still answered.
    fn close(&self);

    /// Closes, and waits until everything is answered and every thread has ended; false when that is not
    /// so by `deadline`.
    fn drain(&self, deadline: Instant) -> bool;
}
