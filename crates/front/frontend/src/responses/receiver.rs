//! The two ends of the queue: the connection's and the model's.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_types::{Cancellation, MemoryBudget, Responder, Response, ResponseSink};

use super::queue::{KeyedResponse, OnOverflow, Overflow, Queue, ResponseKey};

/// Receives the responses to the requests of one stream, or to one request.
///
/// Once it is dropped, it accepts no more of them, and models that ask learn that nobody listens.
#[derive(Debug)]
pub struct ResponseReceiver {
    queue: Arc<Queue>,
    /// The ordered request whose response can be sent next.
    awaited: u64,
    /// Responses taken from the queue but not yet received.
    taken: VecDeque<KeyedResponse>,
}

impl ResponseReceiver {
    /// Returns a receiver for which at most `limit` bytes of responses may wait; a single one may be longer. They count
    /// to `budget`. Once more memory is in use than that allows, only little may wait.
    pub fn new(limit: usize, on_overflow: OnOverflow, budget: &Arc<MemoryBudget>) -> Self {
        let queue = Queue::new(limit, on_overflow, budget);
        Self { queue, awaited: 0, taken: VecDeque::new() }
    }

    /// Returns the responder of the request with this `key`. It sets `cancellation` when responses exceed the bound.
    pub fn responder(&self, key: ResponseKey, cancellation: Cancellation) -> Responder {
        Responder::calling(StreamResponder { queue: self.queue.clone(), key, cancellation })
    }

    /// Sets the ordered request whose response can be sent next. No other ordered response wakes the waiting task.
    pub fn await_ordered(&mut self, number: u64) {
        self.awaited = number;
    }

    /// Returns the next response, in order of arrival.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<KeyedResponse, Overflow>> {
        if self.taken.is_empty()
            && let Err(overflow) =
                self.queue.take_all(self.awaited, context.waker(), &mut self.taken)
        {
            return Poll::Ready(Err(overflow));
        }
        self.taken.pop_front().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)))
    }

    /// Releases `weight` bytes that were sent or need not be, so that other responses may use their room.
    pub fn release(&self, weight: usize) {
        self.queue.release(weight);
    }

    /// Accepts no more responses and drops the waiting ones.
    pub fn close(&mut self) {
        self.taken.clear();
        self.queue.close();
    }
}

impl Drop for ResponseReceiver {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Receives the responses to one request from any thread and queues them for its connection.
#[derive(Debug)]
struct StreamResponder {
    queue: Arc<Queue>,
    key: ResponseKey,
    cancellation: Cancellation,
}

impl ResponseSink for StreamResponder {
    fn respond(&mut self, response: Response) {
        let pushed = self.queue.push(KeyedResponse { key: self.key, response });
        if pushed.is_err() {
            self.cancellation.cancel();
        }
    }

    fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }
}
