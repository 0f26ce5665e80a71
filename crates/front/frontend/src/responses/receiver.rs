//! The connection's end, and the model's.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_types::{Cancellation, MemoryBudget, Responder, Response, ResponseSink};

use super::queue::{KeyedResponse, OnOverflow, Overflow, Queue, ResponseKey};

/// Receives the responses to the requests of one stream, or to one request.
///
/// Dropped, it takes no more of them, and models that ask learn that nobody listens.
#[derive(Debug)]
pub struct ResponseReceiver {
    queue: Arc<Queue>,
    /// The ordered request whose response can be sent next.
    awaited: u64,
    /// Taken from the queue, not yet received.
    taken: VecDeque<KeyedResponse>,
}

impl ResponseReceiver {
    /// At most `limit` bytes of responses may wait for the client; a single one may be longer. What waits is counted to
    /// `budget`; once more is in use than that has, only little may wait.
    pub fn new(limit: usize, on_overflow: OnOverflow, budget: &Arc<MemoryBudget>) -> Self {
        let queue = Queue::new(limit, on_overflow, budget);
        Self { queue, awaited: 0, taken: VecDeque::new() }
    }

    /// The responder of a request that goes by the name `key` here; `cancellation` is set where its responses pass the
    /// bound.
    pub fn responder(&self, key: ResponseKey, cancellation: Cancellation) -> Responder {
        Responder::calling(StreamResponder { queue: self.queue.clone(), key, cancellation })
    }

    /// Of the ordered requests, `number` is the one whose response can be sent next: only it wakes the task that waits.
    pub fn await_ordered(&mut self, number: u64) {
        self.awaited = number;
    }

    /// The next response, in the order they came.
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

    /// `weight` bytes of what was received have been sent, or need not be: others may take their room.
    pub fn release(&self, weight: usize) {
        self.queue.release(weight);
    }

    /// Takes no more responses and drops those that wait.
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

/// Takes the responses to one request, on whatever thread makes them, and queues them for its connection.
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
