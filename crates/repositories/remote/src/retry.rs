//! Repeats requests that got no answer: the number of attempts, and the waits between them.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{FailureKind, RemoteError};

const FIRST: Duration = Duration::from_millis(100);

const LONGEST: Duration = Duration::from_secs(5);

/// Further attempts after the first.
const ATTEMPTS: u32 = 6;

/// Time after which no further attempt is made, however few there were: each may have waited for its time limit.
const IN_ALL: Duration = Duration::from_secs(40);

/// The waits between attempts of one request.
pub struct Backoff {
    made: u32,
    since: Instant,
}

impl Backoff {
    pub fn new() -> Self {
        Self { made: 0, since: Instant::now() }
    }

    /// Waits before the next attempt, as long as the server wants within limits. Returns false if no attempt is left.
    #[expect(
        clippy::disallowed_methods,
        reason = "the wait between attempts is tokio's time, which tests can move"
    )]
    pub async fn wait(&mut self, failure: &RemoteError) -> bool {
        if self.made == ATTEMPTS || self.since.elapsed() > IN_ALL {
            return false;
        }
        let usual = FIRST.saturating_mul(1 << self.made).min(LONGEST);
        // Random waits: clients that failed together should not return together.
        let usual = usual.mul_f64(0.5 + fastrand::f64() / 2.0);
        let wait = failure.wait().map_or(usual, |wanted| wanted.clamp(usual, LONGEST * 2));
        self.made += 1;
        tokio::time::sleep(wait).await;
        true
    }
}

/// Bytes that count as progress of a broken download.
const STEP: u64 = 64 << 10;

/// The attempts of one download. Each continues after the last break. There are more as long as each makes progress.
pub struct Resume {
    backoff: Backoff,
    broke_at: u64,
}

impl Resume {
    /// Makes the attempts for a download that begins at a byte.
    pub fn at(position: u64) -> Self {
        Self { backoff: Backoff::new(), broke_at: position }
    }

    /// Waits before the next attempt, after a failure at a byte. Returns the failure if no attempt is left.
    pub async fn wait(
        &mut self,
        failure: RemoteError,
        position: u64,
        what: &str,
    ) -> Result<(), RemoteError> {
        if position >= self.broke_at + STEP {
            self.backoff = Backoff::new();
        }
        self.broke_at = position;
        if failure.kind() != FailureKind::Unavailable || !self.backoff.wait(&failure).await {
            return Err(failure);
        }
        log::info!("the download of {what} broke and resumes at byte {position}: {failure}");
        Ok(())
    }
}

/// Calls `ask` until its result is not [`FailureKind::Unavailable`], and returns it.
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
                log::debug!("retrying after an error: {error}");
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> RemoteError {
        RemoteError::new(FailureKind::Unavailable, "it is being restarted")
    }

    /// How often a server is asked that takes so long for each failure, and how long that takes in all.
    async fn asked(each: Duration, failure: RemoteError) -> (u32, Duration) {
        let (mut count, start) = (0, Instant::now());
        let result: Result<(), RemoteError> = retried(|| {
            count += 1;
            let failure = failure.clone();
            async move {
                tokio::time::advance(each).await;
                Err(failure)
            }
        })
        .await;
        assert_eq!(result.expect_err("it never answers").kind(), failure.kind());
        (count, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_server_is_asked_seven_times_at_growing_intervals() {
        let (count, time) = asked(Duration::ZERO, unavailable()).await;
        assert_eq!(count, 1 + ATTEMPTS);
        // 63 times the first interval, or half of that by chance; timers go by milliseconds.
        let all = FIRST * 63;
        assert!((all / 2..=all + Duration::from_millis(20)).contains(&time), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slowly_failing_server_is_retried_for_a_limited_time() {
        let (count, time) = asked(IN_ALL / 3 + Duration::from_secs(1), unavailable()).await;
        assert_eq!(count, 3);
        assert!(time > IN_ALL && time < IN_ALL + Duration::from_secs(5), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_retry_after_time_is_respected() {
        let wanted = Duration::from_secs(7);
        let (count, time) = asked(Duration::ZERO, unavailable().retry_after(Some(wanted))).await;
        let all = wanted * ATTEMPTS;
        assert_eq!(count, 1 + ATTEMPTS);
        assert!((all..=all + Duration::from_millis(20)).contains(&time), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_errors_are_not_retried() {
        let missing = RemoteError::new(FailureKind::Missing, "no such model");
        assert_eq!(asked(Duration::ZERO, missing).await, (1, Duration::ZERO));
    }
}
