//! Handing requests over to an instance that executes another, and taking them back.

use std::sync::Arc;

use crate::Batch;

/// An instance that waits for another process, and gains when its next requests are there before the last answer is. Asked
/// for only where each request is executed alone and answered by its batch: batches have one request, none is taken out.
///
/// Batches are executed in the order in which they were given to it. Those behind the first wait, and whoever holds
/// [`Pipeline::waiting`] takes them back.
pub trait Pipeline {
    /// Begins to execute the batch, while no other is under way. What goes wrong is answered in the batch.
    fn begin(&mut self, batch: &mut Batch);

    /// How many more batches are worth being handed over now; the one that is executed does not count.
    fn room(&self) -> usize;

    /// Hands over a batch behind those before it. Its [number](Batch::number) is higher than theirs.
    ///
    /// False: nothing was handed over. A request without an answer can then be executed by any instance.
    fn hand_over(&mut self, batch: &mut Batch) -> bool;

    /// Waits until the batch is executed: the one begun, or one handed over, which is found by its number. What was
    /// handed over before it is complete, or was taken back.
    fn complete(&mut self, batch: &mut Batch);

    /// Whether it executes nothing any more, perhaps since the batch that was complete last: what was handed over is to be
    /// taken back, for it would fail too.
    fn has_ended(&self) -> bool;

    /// What waits in it, until it has ended.
    fn waiting(&self) -> Arc<dyn WaitingBatches>;
}

/// The batches that wait in an instance.
pub trait WaitingBatches: Send + Sync {
    /// Takes the first of them back, from whatever thread, but none with a number below `from`: the instance is known to
    /// have begun with those, or is about to.
    fn take_first_back(&self, from: usize) -> ReturnedRequests;
}

/// What was taken back from an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedRequests {
    /// The batch with this number. The instance has begun with all that were handed over before it.
    Batch(usize),
    /// Nothing: the instance has begun with every batch.
    Nothing,
    /// Nothing yet: the instance has not even begun with what comes before, which is not to be taken back. It will
    /// in a moment.
    NotYet,
}
