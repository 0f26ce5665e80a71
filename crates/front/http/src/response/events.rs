//! The console's events as the body of a response.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use galatea_console::{END_OF_SERVER, END_OF_SLOW_WATCHER, Watcher};

/// A body of events that ends when the server wants its clients to disconnect. Draining does not wait for it, because
/// it is not a request of a model.
pub(crate) struct EventBody {
    watcher: Watcher,
    drain: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_ended: bool,
}

impl EventBody {
    /// Returns the body. `drain` completes when the server wants its clients to disconnect.
    pub fn new(watcher: Watcher, drain: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
        Self { watcher, drain, is_ended: false }
    }

    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let piece = match self.drain.as_mut().poll(context) {
            Poll::Ready(()) => self.end(END_OF_SERVER),
            Poll::Pending => match self.watcher.poll_next(context) {
                Poll::Ready(Some(event)) => event,
                Poll::Ready(None) => self.end(END_OF_SLOW_WATCHER),
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(Some(piece))
    }

    fn end(&mut self, event: &'static [u8]) -> Bytes {
        self.is_ended = true;
        Bytes::from_static(event)
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}
