//! A bucket of tokens that fills at a fixed rate: requests a second, with a burst.

use std::time::{Duration, Instant};

/// The rate at which a client may send requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRate {
    /// Requests a second in the long run; above 0.
    pub per_second: f64,
    /// Requests at once after a long enough pause; at least 1.
    pub burst: f64,
}

impl Default for RequestRate {
    fn default() -> Self {
        Self { per_second: f64::INFINITY, burst: f64::INFINITY }
    }
}

#[derive(Debug)]
pub(super) struct TokenBucket {
    tokens: f64,
    /// The time of the last fill; `None` for a full bucket from which nothing was taken.
    filled: Option<Instant>,
}

impl TokenBucket {
    pub fn full(rate: RequestRate) -> Self {
        Self { tokens: rate.burst, filled: None }
    }

    /// Takes one token. The error is the time until the next token.
    pub fn take(&mut self, rate: RequestRate, now: Instant) -> Result<(), Duration> {
        self.fill(rate, now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / rate.per_second;
        Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX))
    }

    pub fn is_full(&mut self, rate: RequestRate, now: Instant) -> bool {
        self.fill(rate, now);
        self.tokens >= rate.burst
    }

    fn fill(&mut self, rate: RequestRate, now: Instant) {
        let before = self.filled.replace(now).unwrap_or(now);
        let since = now.saturating_duration_since(before).as_secs_f64();
        self.tokens = (self.tokens + since * rate.per_second).min(rate.burst);
    }
}
