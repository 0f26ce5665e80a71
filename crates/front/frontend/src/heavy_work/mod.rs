//! Long work on bodies, such as decoding, decompressing, ranking or encoding, which would delay a connection's thread.
//!
//! A connection's thread serves many clients, so long work for one of them must not run there. It runs on a few threads
//! with a lower priority: when cores are short, the system prefers the threads that serve connections and run models.

mod pool;
#[cfg(test)]
mod tests;

use std::{fmt, num::NonZero, sync::Arc, thread};

use galatea_types::{Code, Error};

use self::pool::Pool;

/// A pool of threads for work on many bytes, shared by all front ends of a server. Its threads start on demand and end
/// when it is dropped.
pub struct HeavyWork(Arc<Pool>);

/// The reason why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeavyWorkError {
    /// The queue is full.
    #[error(
        "the server is busy with {waiting} other long requests, the most it accepts; try again later"
    )]
    Full {
        /// The number of pieces of work that may wait.
        waiting: usize,
    },
    /// The work panicked.
    #[error("internal error while working on a long request")]
    Panicked,
}

impl From<HeavyWorkError> for Error {
    fn from(error: HeavyWorkError) -> Self {
        let code = match error {
            HeavyWorkError::Full { .. } => Code::Exhausted,
            HeavyWorkError::Panicked => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl HeavyWork {
    /// The size in bytes from which work belongs here. Work just below it takes many times as long as a hand-over to
    /// another thread and back. Yet other clients of the thread do not notice it. The slowest work, numbers as text, runs
    /// at some 200 MB a second.
    pub const MIN_BYTES: usize = 64 << 10;

    /// The bytes that are copied in the time in which one byte is read as text.
    const COPIED_BYTES: usize = 16;

    /// The number of pieces of work that may wait for a thread.
    const QUEUE: usize = 256;

    /// The most threads, because they share memory and caches with the models.
    const MAX_THREADS: usize = 8;

    /// Returns a pool of at most `threads` threads with room for `queue` waiting pieces of work.
    pub fn new(threads: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self(Pool::new(threads.max(1), queue)))
    }

    /// Returns how much work waits for a thread, and how much was refused since the start.
    pub fn counts(&self) -> (usize, u64) {
        self.0.counts()
    }

    /// Returns `true` if work on `bytes` bytes is heavy.
    pub fn is_heavy(bytes: usize) -> bool {
        bytes >= Self::MIN_BYTES
    }

    /// Returns the bytes of other work that take as long as a copy of `bytes` bytes from or to shared memory.
    pub fn weight_of_copy(bytes: usize) -> usize {
        bytes / Self::COPIED_BYTES
    }

    /// Runs `work` on a thread of the pool and returns its result. Fails at once if the queue is full. Work whose
    /// future is dropped before it begins never runs.
    pub fn run<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, HeavyWorkError>> + Send + use<T, W> {
        let submitted = self.0.submit(work);
        async move { submitted?.await.map_err(|_| HeavyWorkError::Panicked) }
    }

    /// Runs `work` on `bytes` bytes: on this thread if it is light, else on a thread of the pool.
    pub async fn run_sized<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HeavyWorkError> {
        if Self::is_heavy(bytes) { self.run(work).await } else { Ok(work()) }
    }
}

impl Default for HeavyWork {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self(Pool::new(cores.min(Self::MAX_THREADS), Self::QUEUE))
    }
}

impl Drop for HeavyWork {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for HeavyWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeavyWork")
    }
}
