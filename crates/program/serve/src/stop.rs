//! Requests to a server to stop.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{self, Receiver, Sender},
};

use galatea_engine::StartupError;

/// Asks a server to stop, from any thread.
#[derive(Clone)]
pub struct StopHandle {
    sender: Sender<Event>,
    /// The server is stopping, so another request has no effect.
    is_stopping: Arc<AtomicBool>,
}

/// A change that a server waits for.
pub(crate) enum Event {
    /// The server is asked to stop.
    Stop,
    /// A new server has taken over.
    HandedOver,
    /// The models of the start are loaded.
    Loaded(Result<(), StartupError>),
}

impl StopHandle {
    /// Returns a handle, and the receiver of its requests.
    pub(crate) fn new() -> (Self, Receiver<Event>) {
        let (sender, events) = mpsc::channel();
        (Self { sender, is_stopping: Arc::default() }, events)
    }

    /// Asks the server to stop, or to cut its drain delay short. Returns `false` if it is already stopping: the caller may want
    /// to end the process.
    pub fn request(&self) -> bool {
        if self.is_stopping.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.send(Event::Stop);
        true
    }

    /// Sets whether the next request finds a stopping server.
    pub(crate) fn set_stopping(&self, is_stopping: bool) {
        self.is_stopping.store(is_stopping, Ordering::Release);
    }

    /// Sends an event to the server, unless it is gone.
    pub(crate) fn send(&self, event: Event) {
        let _ = self.sender.send(event);
    }
}
