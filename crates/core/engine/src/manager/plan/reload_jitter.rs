//! Spreads the loads of several servers that see the same change of a shared repository: the rule alone, with times as arguments.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

/// The settings of the delay between a change of a repository and its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadJitter {
    /// The longest delay; zero: changes are loaded at once.
    pub longest: Duration,
    /// A number that differs between servers.
    pub seed: u64,
}

impl ReloadJitter {
    /// Returns the delay of a change. Each delay up to the longest is as likely as any other.
    pub fn delay(&self, change: &impl Hash) -> Duration {
        let mut hasher = DefaultHasher::new();
        (self.seed, change).hash(&mut hasher);
        // The high half of the product: a number below `longest` for each hash.
        let scaled = self.longest.as_nanos().saturating_mul(hasher.finish().into()) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// The wait of the present changes.
#[derive(Debug, Default)]
pub struct ReloadWait {
    due: Option<Instant>,
}

impl ReloadWait {
    /// Returns whether changes may be loaded now. `first` is one of those that no longer change; `None`: there are none.
    ///
    /// The first change begins the wait. Changes that come later are loaded with it, so that an ensemble and its models are
    /// loaded together.
    pub fn is_over(
        &mut self,
        jitter: &ReloadJitter,
        first: Option<&impl Hash>,
        now: Instant,
    ) -> bool {
        let Some(first) = first else {
            self.due = None;
            return true;
        };
        if jitter.longest.is_zero() {
            return true;
        }
        let due = *self.due.get_or_insert_with(|| {
            let delay = jitter.delay(first);
            log::info!("Models have changed and are loaded in {delay:.3?} (--reload-jitter)");
            now + delay
        });
        if due > now {
            return false;
        }
        self.due = None;
        true
    }

    /// Returns the rest of a wait.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_change_begins_the_wait_and_later_ones_end_with_it() {
        let jitter = ReloadJitter { longest: 60 * SECOND, seed: 7 };
        let (delay, now) = (jitter.delay(&"a"), Instant::now());
        assert_ne!(delay, jitter.delay(&"b"));
        let mut wait = ReloadWait::default();
        assert!(wait.is_over(&jitter, None::<&&str>, now));
        assert_eq!(wait.left(now), None);
        assert!(!wait.is_over(&jitter, Some(&"a"), now));
        let almost = now + delay.saturating_sub(Duration::from_nanos(1));
        assert!(!wait.is_over(&jitter, Some(&"b"), almost));
        assert_eq!(wait.left(almost), Some(Duration::from_nanos(1)));
        assert!(wait.is_over(&jitter, Some(&"b"), now + delay));
        assert_eq!(wait.left(now), None);
        assert!(!wait.is_over(&jitter, Some(&"b"), now + delay), "the next change waits anew");
        assert!(wait.is_over(&jitter, None::<&&str>, now), "it was taken back");
        assert_eq!(wait.left(now), None);
    }

    #[test]
    fn no_jitter_is_no_wait() {
        let (off, now) = (ReloadJitter { longest: Duration::ZERO, seed: 1 }, Instant::now());
        assert!(ReloadWait::default().is_over(&off, Some(&"a"), now));
    }

    #[test]
    fn the_delays_of_many_servers_are_spread_over_the_whole_time() {
        let mut tenths = [0; 10];
        for seed in 0..1000 {
            let jitter = ReloadJitter { longest: 10 * SECOND, seed };
            tenths[jitter.delay(&"model").as_secs() as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (60..150).contains(count)), "{tenths:?}");
    }

    proptest! {
        #[test]
        fn a_delay_is_shorter_than_the_longest_and_always_the_same(
            seconds in 1..u64::MAX, seed: u64, change: String,
        ) {
            let jitter = ReloadJitter { longest: Duration::from_secs(seconds), seed };
            let delay = jitter.delay(&change);
            prop_assert!(delay < jitter.longest);
            prop_assert_eq!(delay, jitter.delay(&change));
        }
    }
}
