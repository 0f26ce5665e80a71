//! When the Redis server counts as lost, and when one thread asks it again: the rule alone, with times as arguments.

use std::time::{Duration, Instant};

/// Pauses between two attempts to reach a lost server.
pub const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub const LAST_PAUSE: Duration = Duration::from_secs(5);

/// A server that worked for that long is asked again soon after it is lost. One that is lost earlier gets the next longer
/// pause: it answers a greeting and then fails requests, and each of them would wait for a time-out.
const STEADY: Duration = Duration::from_secs(30);

/// The state of the server, as all threads see it.
#[derive(Debug)]
pub struct Outage {
    state: State,
    /// The pause after the next failure.
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Reached {
        since: Option<Instant>,
    },
    /// Nobody asks the server before `until`.
    Pausing {
        until: Instant,
    },
    /// One thread asks.
    Asking,
}

/// The answer to a thread that has no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The thread connects, and reports the outcome.
    Ask,
    /// The thread waits for that long, or until the server is reached.
    Wait(Duration),
}

/// The effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The server is lost from now on.
    Lost,
    /// The server is reached from now on.
    Reached,
    /// The state is as before.
    None,
}

impl Outage {
    /// Returns the state of a server that was just reached for the first time.
    pub fn new() -> Self {
        Self { state: State::Reached { since: None }, pause: FIRST_PAUSE }
    }

    /// Returns whether the server is lost.
    pub fn is_lost(&self) -> bool {
        !matches!(self.state, State::Reached { .. })
    }

    /// Tells a thread without a connection whether it is the one that asks.
    pub fn take_turn(&mut self, now: Instant) -> Turn {
        match self.state {
            State::Reached { .. } => Turn::Ask,
            State::Pausing { until } if until <= now => {
                self.state = State::Asking;
                Turn::Ask
            }
            State::Pausing { until } => Turn::Wait(until.saturating_duration_since(now)),
            State::Asking => Turn::Wait(LAST_PAUSE),
        }
    }

    /// Records that a command or an attempt to connect failed.
    pub fn record_failure(&mut self, now: Instant) -> Change {
        let change = if self.is_lost() { Change::None } else { Change::Lost };
        if let State::Reached { since } = self.state
            && since.is_none_or(|since| now.saturating_duration_since(since) >= STEADY)
        {
            self.pause = FIRST_PAUSE;
        }
        self.state = State::Pausing { until: now + self.pause };
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        change
    }

    /// Records that a thread has a connection.
    pub fn record_connection(&mut self, now: Instant) -> Change {
        if !self.is_lost() {
            return Change::None;
        }
        self.state = State::Reached { since: Some(now) };
        Change::Reached
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_thread_asks_in_growing_pauses_until_the_server_is_reached() {
        let mut now = Instant::now();
        let mut outage = Outage::new();
        assert_eq!(outage.take_turn(now), Turn::Ask);
        assert_eq!(outage.record_failure(now), Change::Lost);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let Turn::Wait(pause) = outage.take_turn(now) else { panic!("no pause") };
            pauses.push(pause.as_millis());
            now += pause;
            assert_eq!(outage.take_turn(now), Turn::Ask);
            assert_eq!(outage.take_turn(now), Turn::Wait(LAST_PAUSE), "another thread asks");
            assert_eq!(outage.record_failure(now), Change::None);
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000]);
        now += LAST_PAUSE;
        assert_eq!(outage.take_turn(now), Turn::Ask);
        assert_eq!(outage.record_connection(now), Change::Reached);
        assert_eq!(outage.record_connection(now), Change::None);
        assert_eq!([outage.take_turn(now), outage.take_turn(now)], [Turn::Ask; 2]);
    }

    #[test]
    fn only_a_steady_server_is_asked_soon_again() {
        let now = Instant::now();
        for (worked, expected) in [(STEADY, 10), (STEADY - Duration::from_millis(1), 20)] {
            let mut outage = Outage::new();
            outage.record_failure(now);
            assert_eq!(outage.take_turn(now + FIRST_PAUSE), Turn::Ask);
            outage.record_connection(now);
            outage.record_failure(now + worked);
            let wait = Turn::Wait(Duration::from_millis(expected));
            assert_eq!(outage.take_turn(now + worked), wait);
        }
    }

    proptest! {
        /// A simulation: threads take turns and report at any time.
        #[test]
        fn a_lost_server_is_never_asked_by_two_threads_nor_before_its_pause(
            steps in prop::collection::vec((0u64..7000, 0u8..3), 1..200),
        ) {
            let mut now = Instant::now();
            let mut outage = Outage::new();
            let (mut earliest, mut is_asked) = (None, false);
            for (passed, step) in steps {
                now += Duration::from_millis(passed);
                match (step, outage.take_turn(now)) {
                    (_, Turn::Ask) => {
                        prop_assert!(!is_asked);
                        prop_assert!(earliest.is_none_or(|earliest| earliest <= now));
                        is_asked = outage.is_lost();
                    }
                    (_, Turn::Wait(wait)) => prop_assert!(wait <= LAST_PAUSE && outage.is_lost()),
                }
                match step {
                    0 => continue,
                    1 => {
                        outage.record_failure(now);
                        earliest = Some(now + FIRST_PAUSE);
                    }
                    _ => {
                        outage.record_connection(now);
                        prop_assert!(!outage.is_lost());
                        earliest = None;
                    }
                }
                is_asked = false;
            }
        }
    }
}
