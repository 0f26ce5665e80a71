//! How a server is asked to stop, and hears of it.

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
    /// Whether the server is stopping, so that a further request has nothing to ask for.
    is_stopping: Arc<AtomicBool>,
}

/// A change that a server waits for.
pub(crate) enum Event {
    /// The server is asked to stop.
    Stop,
    /// The models were loaded that are loaded at start.
    Loaded(Result<(), StartupError>),
}

impl StopHandle {
    /// Returns a handle, and the end where its requests arrive.
    pub(crate) fn new() -> (Self, Receiver<Event>) {
        let (sender, events) = mpsc::channel();
        (Self { sender, is_stopping: Arc::default() }, events)
    }

    /// Asks the server to stop, or to cut its drain delay short. Returns `false` where it is stopping already: whoever
    /// asks again may want to end the process.
    pub fn request(&self) -> bool {
        if self.is_stopping.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.send(Event::Stop);
        true
    }

    /// Whether the next request finds a server that is stopping.
    pub(crate) fn set_stopping(&self, is_stopping: bool) {
        self.is_stopping.store(is_stopping, Ordering::Release);
    }

    /// Tells the server, unless it is gone.
    pub(crate) fn send(&self, event: Event) {
        let _ = self.sender.send(event);
    }
}
