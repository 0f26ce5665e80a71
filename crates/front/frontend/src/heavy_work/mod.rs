//! Work that would hold up a connection's thread: long bodies decoded, inflated, ranked, encoded.
//!
//! A connection's thread serves many clients, so what takes long for one of them must not run there. It runs on a few
//! threads of its own, at a lower priority: where cores are short, the scheduler of the system gives them to the
//! threads that serve connections and run models first.

mod pool;
#[cfg(test)]
mod tests;

use std::{fmt, num::NonZero, sync::Arc, thread};

use galatea_types::{Code, Error};

use self::pool::Pool;

/// A pool of threads for work over a bound of bytes, shared by all front ends of a server. Its threads start with the
/// first work and end when it is dropped.
pub struct HeavyWork(Arc<Pool>);

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeavyWorkError {
    /// As much waits as may.
    #[error(
        "the server is busy with {waiting} other long requests, as many as may wait; try again later"
    )]
    Full {
        /// How much may wait.
        waiting: usize,
    },
    /// It panicked.
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
    /// Work on this many bytes and more belongs here. Less is done in about the time that the hand-over to another
    /// thread and back takes many times over, yet is too short to be felt by others on the connection's thread:
    /// the slowest of it, numbers as text, runs at some 200 MB a second.
    pub const MIN_BYTES: usize = 64 << 10;

    /// How much may wait for a thread.
    const QUEUE: usize = 256;

    /// Most threads: memory and caches are shared with the models.
    const MAX_THREADS: usize = 8;

    /// A pool of at most `threads` threads, for which `queue` pieces of work may wait.
    pub fn new(threads: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self(Pool::new(threads.max(1), queue)))
    }

    /// How much waits for a thread, and how much was refused since the start.
    pub fn counts(&self) -> (usize, u64) {
        self.0.counts()
    }

    /// Whether work on `bytes` bytes is heavy.
    pub fn is_heavy(bytes: usize) -> bool {
        bytes >= Self::MIN_BYTES
    }

    /// The result of `work`, done by a thread of the pool. Refused at once where too much waits. Work whose future is
    /// dropped before it has begun is not begun.
    pub fn run<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, HeavyWorkError>> + Send + use<T, W> {
        let submitted = self.0.submit(work);
        async move { submitted?.await.map_err(|_| HeavyWorkError::Panicked) }
    }

    /// The result of `work` on `bytes` bytes: here and now where it is light, else by a thread of the pool.
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
