//! The throughput of a model, measured over some answers.

use std::time::{Duration, Instant};

/// A measurement has at least this many places, and this many times the limit.
const MIN_PLACES: u32 = 200;
const PLACES_PER_LIMIT: u32 = 8;
/// After this time fewer are enough.
const LONG: Duration = Duration::from_secs(2);
const FEW_PLACES: u32 = 20;

/// A measurement in progress. Only the time with requests counts.
pub(super) struct Measurement {
    begun: Instant,
    last: Instant,
    busy: Duration,
    /// The places that were taken, multiplied by the seconds.
    place_seconds: f64,
    answered: u32,
    answers: u32,
    total_answer: Duration,
    was_full: bool,
}

/// The figures of a finished measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThroughputFigures {
    /// Places that became free by answers, per busy second.
    pub throughput: f64,
    pub mean_taken: f64,
    pub mean_answer: Duration,
    /// True if a request was refused because all places were taken.
    pub was_full: bool,
}

impl Measurement {
    pub fn new(now: Instant) -> Self {
        Self {
            begun: now,
            last: now,
            busy: Duration::ZERO,
            place_seconds: 0.0,
            answered: 0,
            answers: 0,
            total_answer: Duration::ZERO,
            was_full: false,
        }
    }

    /// Counts the time since the last call, during which `taken` places were taken.
    pub fn advance(&mut self, now: Instant, taken: u32) {
        // Threads read the clock before they have the lock, so times may be a little out of order.
        let passed = now.saturating_duration_since(self.last);
        self.last = self.last.max(now);
        if taken > 0 {
            self.busy += passed;
            self.place_seconds += passed.as_secs_f64() * f64::from(taken);
        }
    }

    pub fn note_full(&mut self) {
        self.was_full = true;
    }

    pub fn note_answer(&mut self, places: u32, after: Duration) {
        self.answered = self.answered.saturating_add(places);
        self.answers = self.answers.saturating_add(1);
        self.total_answer = self.total_answer.saturating_add(after);
    }

    pub fn is_complete(&self, now: Instant, limit: u32) -> bool {
        let wanted = MIN_PLACES.max(limit.saturating_mul(PLACES_PER_LIMIT));
        let is_long = now.saturating_duration_since(self.begun) >= LONG;
        self.answered >= if is_long { FEW_PLACES } else { wanted }
    }

    /// Returns the figures, and begins again. `None` if too little time has passed to tell.
    pub fn finish(&mut self, now: Instant) -> Option<ThroughputFigures> {
        let Self { busy, place_seconds, answered, answers, total_answer, was_full, .. } = *self;
        *self = Self::new(self.last.max(now));
        let seconds = busy.as_secs_f64();
        (seconds > 0.0 && answers > 0).then(|| ThroughputFigures {
            throughput: f64::from(answered) / seconds,
            mean_taken: place_seconds / seconds,
            mean_answer: total_answer / answers,
            was_full,
        })
    }
}
