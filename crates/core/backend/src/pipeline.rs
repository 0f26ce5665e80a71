//! Hands requests over to an instance that executes another one, and takes them back.

use std::sync::Arc;

use crate::Batch;

/// An instance that waits for another process, and so gains if its next requests arrive before it sends its last response. It
/// is used only if each request is executed alone and its batch answers it: batches have one request, and none is taken out.
///
/// Batches are executed in the order in which they were handed over. All but the first wait, and the holder of
/// [`Pipeline::waiting`] takes them back.
pub trait Pipeline {
    /// Begins to execute the batch while no other is executing. The batch gets the response of a failure.
    fn begin(&mut self, batch: &mut Batch);

    /// Returns how many more batches should be handed over now. The executing one does not count.
    fn room(&self) -> usize;

    /// Hands over a batch behind the earlier ones. Its [number](Batch::number) is higher than theirs.
    ///
    /// Returns false if nothing was handed over. A request without a response can then be executed by any instance.
    fn hand_over(&mut self, batch: &mut Batch) -> bool;

    /// Waits until a batch that was begun or handed over is executed; its number identifies it. Batches handed
    /// over before it must be complete or taken back.
    fn complete(&mut self, batch: &mut Batch);

    /// Returns true if it executes nothing any more, possibly since the last complete batch. Batches that were handed over must
    /// then be taken back, because they would fail too.
    fn has_ended(&self) -> bool;

    /// Returns the batches that wait in it, until it has ended.
    fn waiting(&self) -> Arc<dyn WaitingBatches>;
}

/// The batches that wait in an instance.
pub trait WaitingBatches: Send + Sync {
    /// Takes the first waiting batch back, from any thread. Batches with a number below `from` stay: the
    /// instance has begun them or is about to.
    fn take_first_back(&self, from: usize) -> ReturnedRequests;
}

/// The result of taking a batch back from an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedRequests {
    /// The batch with this number. The instance has begun all that were handed over before it.
    Batch(usize),
    /// No batch: the instance has begun every one.
    Nothing,
    /// No batch yet: the instance has not begun an earlier batch, which must not be taken back. It will begin it a moment
    /// later.
    NotYet,
}
