//! Requests a second, with a burst: a bucket of tokens that fills at the rate.

use std::time::{Duration, Instant};

/// How often a client may send requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRate {
    /// In the long run; above 0.
    pub per_second: f64,
    /// At once, after a pause that was long enough; at least 1.
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
    /// `None`: full, as long as nothing was taken.
    filled: Option<Instant>,
}

impl TokenBucket {
    pub fn full(rate: RequestRate) -> Self {
        Self { tokens: rate.burst, filled: None }
    }

    /// Takes one, or says how long it is until there is one.
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
