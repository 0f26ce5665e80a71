//! Common parts of the decoupled models: a thread per request, and its end.

use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use galatea_backend::ResponseSender;
use galatea_types::{Error, Stop};

/// Longest delay until a cancelled request is noticed.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The requests that an instance still answers, each on its own thread. Dropping it ends them.
#[derive(Default)]
pub(crate) struct OpenStreams {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl OpenStreams {
    /// Answers a request on its own thread.
    pub fn open(
        &mut self,
        sender: ResponseSender,
        answer: impl FnOnce(ResponseSender, &Stop) + Send + 'static,
    ) {
        self.threads.retain(|thread| !thread.is_finished());
        let stop = self.stop.clone();
        // Without a thread the sender is dropped, which answers with an error.
        let thread = thread::Builder::new().spawn(move || answer(sender, &stop));
        self.threads.extend(thread);
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        self.stop.request();
        for thread in self.threads.drain(..) {
            // A panic in the thread dropped its sender, which answered.
            let _ = thread.join();
        }
    }
}

/// Waits for this time. Returns false if the request was cancelled or the instance shuts down.
#[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
pub(crate) fn pause(stop: &Stop, duration: Duration, sender: &ResponseSender) -> bool {
    let started = Instant::now();
    loop {
        let rest = duration.saturating_sub(started.elapsed());
        if stop.wait(rest.min(LOOK_INTERVAL)) || sender.is_cancelled() {
            return false;
        }
        if rest <= LOOK_INTERVAL {
            return true;
        }
    }
}

/// Returns the error of a cancelled request.
pub(crate) fn cancelled() -> Error {
    Error::cancelled("Request was cancelled")
}

/// Returns the elements of a tensor of 32-bit whole numbers.
pub(crate) fn words(data: &[u8]) -> impl ExactSizeIterator<Item = [u8; 4]> {
    data.as_chunks().0.iter().copied()
}
