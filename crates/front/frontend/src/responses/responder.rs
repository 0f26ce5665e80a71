//! The model's end.

use std::sync::Arc;

use galatea_types::{Cancellation, Response, ResponseSink};

use super::queue::{KeyedResponse, Queue, ResponseKey};

/// Takes the responses to one request, on whatever thread makes them, and queues them for its connection.
#[derive(Debug)]
pub struct StreamResponder {
    queue: Arc<Queue>,
    key: ResponseKey,
    cancellation: Cancellation,
}

impl StreamResponder {
    pub(super) fn new(queue: Arc<Queue>, key: ResponseKey, cancellation: Cancellation) -> Self {
        Self { queue, key, cancellation }
    }
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
