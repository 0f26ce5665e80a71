use std::time::{Duration, Instant};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// An instance that worked this many times longer than the next wait does not keep dying.
const LASTING: u32 = 10;
/// Nor does one that worked this long.
const LONG_LIFE: Duration = Duration::from_secs(10);

/// How long to wait before an instance is made anew: not at all the first time, then longer and longer, so
/// that one that cannot be made, or keeps dying right after, does not keep the machine busy.
pub(crate) struct Pace {
    next: Duration,
    made_at: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self { next: Duration::ZERO, made_at: now }
    }

    pub fn made(&mut self, now: Instant) {
        self.made_at = now;
    }

    /// The wait for an instance that died now.
    pub fn after_death(&mut self, now: Instant) -> Duration {
        let lived = now.saturating_duration_since(self.made_at);
        if lived >= (self.next * LASTING).min(LONG_LIFE) {
            self.next = Duration::ZERO;
        }
        self.step()
    }

    /// The wait for an instance that could not be made.
    pub fn after_failure(&mut self) -> Duration {
        self.step()
    }

    fn step(&mut self) -> Duration {
        let next = (self.next * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(lives: &[Duration]) -> Vec<u128> {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        let die = |&lived: &Duration| {
            now += lived;
            let wait = pace.after_death(now);
            now += wait;
            pace.made(now);
            wait.as_millis()
        };
        lives.iter().map(die).collect()
    }

    #[test]
    fn a_single_death_is_followed_at_once() {
        assert_eq!(waits(&[Duration::ZERO]), [0]);
        let daily = Duration::from_secs(86400);
        assert_eq!(waits(&[daily; 4]), [0; 4]);
        assert_eq!(waits(&[Duration::from_secs(2); 4]), [0; 4]);
    }

    #[test]
    fn dying_again_and_again_is_followed_ever_later() {
        let short = Duration::from_millis(50);
        let expected = [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
        assert_eq!(waits(&[short; 10]), expected);
    }

    #[test]
    fn a_long_life_starts_over() {
        let short = Duration::from_millis(50);
        assert_eq!(waits(&[short, short, short, LONG_LIFE, short]), [0, 100, 200, 0, 100]);
    }

    #[test]
    fn failures_follow_the_death() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let waits = [pace.after_death(now), pace.after_failure(), pace.after_failure()];
        assert_eq!(waits.map(|w| w.as_millis()), [0, 100, 200]);
        // Made at last, but it dies at once.
        pace.made(now);
        assert_eq!(pace.after_death(now).as_millis(), 400);
    }
}
