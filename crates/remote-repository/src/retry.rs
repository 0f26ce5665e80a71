//! Asking again what did not answer: how often, and after how long.

use std::time::{Duration, Instant};

use crate::error::{FailureKind, RemoteError};

const FIRST: Duration = Duration::from_millis(100);

const LONGEST: Duration = Duration::from_secs(5);

/// Further attempts after the first.
const ATTEMPTS: u32 = 6;

/// After that time no further attempt is made, however few there were: each may have waited for its time limit.
const IN_ALL: Duration = Duration::from_secs(40);

/// The waits between the attempts at one thing.
pub struct Backoff {
    made: u32,
    since: Instant,
}

impl Backoff {
    pub fn new() -> Self {
        Self { made: 0, since: Instant::now() }
    }

    /// Waits before the next attempt, for as long as the server wants within bounds. False: there is none.
    pub async fn wait(&mut self, failure: &RemoteError) -> bool {
        if self.made == ATTEMPTS || self.since.elapsed() > IN_ALL {
            return false;
        }
        let usual = FIRST.saturating_mul(1 << self.made).min(LONGEST);
        // Servers that failed together do not come back together.
        let usual = usual.mul_f64(0.5 + fastrand::f64() / 2.0);
        let wait = failure.wait().map_or(usual, |wanted| wanted.clamp(usual, LONGEST * 2));
        self.made += 1;
        tokio::time::sleep(wait).await;
        true
    }
}

/// What `ask` comes to, asked again while it is [`FailureKind::Unavailable`].
pub async fn retried<T, W>(mut ask: impl FnMut() -> W) -> Result<T, RemoteError>
where
    W: Future<Output = Result<T, RemoteError>>,
{
    let mut backoff = Backoff::new();
    loop {
        match ask().await {
            Err(error) if error.kind() == FailureKind::Unavailable => {
                if !backoff.wait(&error).await {
                    return Err(error);
                }
                log::debug!("asked again: {error}");
            }
            other => return other,
        }
    }
}
