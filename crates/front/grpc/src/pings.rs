//! Limits on pings of clients, by the rules of the common gRPC library.

use std::time::Duration;

use tokio::time::Instant;

/// The least interval without calls, when a ping is a sign of life that is not needed more often.
const WITHOUT_CALLS: Duration = Duration::from_secs(2 * 60 * 60);
/// The bytes of an answer to a ping and an acknowledgement of settings. Any further byte was sent for another reason.
const ANSWER: usize = 17 + 9;

/// The definition of bad pings, and the number that a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingRules {
    /// A ping sooner than this after the previous one is bad, unless something was sent in between.
    pub min_interval: Duration,
    /// Applies this interval to a connection without calls too; otherwise that has two hours.
    pub are_usual_without_calls: bool,
    /// The number of bad pings that are accepted until something is sent; the next one ends the connection. 0: any number.
    pub max_strikes: u32,
}

impl Default for PingRules {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_secs(300),
            are_usual_without_calls: false,
            max_strikes: 2,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pings {
    rules: PingRules,
    strikes: u32,
    last: Option<Instant>,
    sent_since: usize,
}

impl Pings {
    pub fn new(rules: PingRules) -> Self {
        Self { rules, strikes: 0, last: None, sent_since: 0 }
    }

    /// Records sent bytes. More than the answer to the last ping clears the client.
    pub fn sent(&mut self, bytes: usize) {
        self.sent_since = self.sent_since.saturating_add(bytes);
    }

    /// Records a ping. Returns `true` if it is one too many.
    pub fn received(&mut self, has_calls: bool, now: Instant) -> bool {
        if self.sent_since > ANSWER {
            (self.strikes, self.last) = (0, None);
        }
        self.sent_since = 0;
        let is_usual = has_calls || self.rules.are_usual_without_calls;
        let interval = if is_usual { self.rules.min_interval } else { WITHOUT_CALLS };
        let is_bad = self.last.is_some_and(|last| now.duration_since(last) < interval);
        self.last = Some(now);
        self.strikes += u32::from(is_bad);
        // The common library sends something of its own while calls are open, which clears the client once.
        let most = self.rules.max_strikes.saturating_add(u32::from(has_calls));
        self.rules.max_strikes > 0 && self.strikes > most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pings are borne, one each `gap` milliseconds, with `sent` bytes before each.
    fn borne(rules: PingRules, has_calls: bool, gap: u64, sent: usize) -> Option<usize> {
        let (mut pings, start) = (Pings::new(rules), Instant::now());
        (0..20)
            .find(|&n| {
                pings.sent(sent);
                pings.received(has_calls, start + Duration::from_millis(gap) * n)
            })
            .and_then(|n| n.try_into().ok())
    }

    #[test]
    fn a_few_early_pings_are_tolerated() {
        let rules = PingRules::default();
        assert_eq!(borne(rules, false, 1000, ANSWER), Some(3));
        assert_eq!(borne(rules, true, 299_000, ANSWER), Some(4));
        assert_eq!(borne(PingRules { max_strikes: 1, ..rules }, false, 1000, 0), Some(2));
        assert_eq!(borne(PingRules { max_strikes: 0, ..rules }, false, 0, 0), None);
    }

    #[test]
    fn pings_at_the_allowed_interval_are_always_tolerated() {
        let rules = PingRules { min_interval: Duration::from_millis(40), ..Default::default() };
        assert_eq!(borne(rules, true, 40, ANSWER), None);
        assert_eq!(borne(rules, false, 40, ANSWER), Some(3), "without calls two hours count");
        let welcome = PingRules { are_usual_without_calls: true, ..rules };
        assert_eq!(borne(welcome, false, 40, ANSWER), None);
    }

    #[test]
    fn sending_data_resets_the_ping_count() {
        assert_eq!(borne(PingRules::default(), false, 1, ANSWER + 1), None);
    }
}
