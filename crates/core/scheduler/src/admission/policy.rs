//! The rule that accepts or refuses a request, for one model. It has no clock: times are arguments.
//!
//! Load is counted in places: a request takes one, or one for each item if the model batches. Two limits hold. The
//! estimated time to the answer must fit the time that the client waits. And while the model is overloaded, no more
//! places are taken than its throughput needs ([`ConcurrencyLimit`]); before that a burst may take several times as many.

use std::time::{Duration, Instant};

use super::{concurrency_limit::ConcurrencyLimit, measurement::Measurement};
use crate::model_shape::ModelShape;

/// The model is overloaded if all places of the limit are taken without a break for this many mean times to the answer,
/// within the bounds.
const PATIENCE: u32 = 20;
const SHORTEST_PATIENCE: Duration = Duration::from_millis(100);
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
/// An overload is looked at again after this many times the patience.
const REVIEW_AFTER: u32 = 10;
/// A burst may take this many times the limit.
const BURST: u32 = 4;
/// The weight of the newest measurement in the throughput.
const NEWEST: f64 = 0.3;
/// The longest wait that a client is told.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    /// The answer would come after `estimate`, and the client waits for `budget`.
    TooLate { estimate: Duration, budget: Duration },
    /// All places are taken.
    Full { limit: u32 },
}

/// A refusal, and when to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdmissionRefusal {
    pub reason: Overload,
    pub wait: Duration,
}

/// The state of the rule for one model.
pub(crate) struct AdmissionPolicy {
    limit: ConcurrencyLimit,
    taken: u32,
    measurement: Measurement,
    /// Places that become free per second when all that the model can use are taken.
    throughput: Option<f64>,
    mean_answer: Duration,
    /// Since when the limit is reached without a break.
    full_since: Option<Instant>,
    overload: Option<Review>,
}

/// The requests since an overload began, or was looked at last.
#[derive(Clone, Copy)]
struct Review {
    since: Instant,
    refused: u32,
    answered: u32,
}

impl Review {
    fn new(since: Instant) -> Self {
        Self { since, refused: 0, answered: 0 }
    }
}

impl AdmissionPolicy {
    pub fn new(shape: ModelShape, now: Instant) -> Self {
        Self {
            limit: ConcurrencyLimit::new(shape),
            taken: 0,
            measurement: Measurement::new(now),
            throughput: None,
            mean_answer: Duration::ZERO,
            full_since: None,
            overload: None,
        }
    }

    /// Returns the number of places that may be taken during an overload.
    pub fn limit(&self) -> u32 {
        self.limit.places()
    }

    /// Returns the number of places that are taken.
    #[cfg(test)]
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Adopts a change of the instances.
    pub fn set_shape(&mut self, shape: ModelShape) {
        self.limit.set_shape(shape);
    }

    /// Checks if a request for `places` would be accepted from a client that waits for `budget`. A refusal is counted.
    ///
    /// # Errors
    /// The refusal. An idle model refuses nothing, so that its figures can always become better.
    pub fn check(
        &mut self,
        now: Instant,
        places: u32,
        budget: Option<Duration>,
    ) -> Result<(), AdmissionRefusal> {
        if self.taken == 0 {
            return Ok(());
        }
        self.review(now);
        let estimate = self.time_to_answer(places);
        let reason = match budget {
            Some(budget) if estimate > budget => Overload::TooLate { estimate, budget },
            _ if self.taken.saturating_add(places) > self.allowed() => {
                self.measurement.note_full();
                Overload::Full { limit: self.limit() }
            }
            _ => return Ok(()),
        };
        if let Some(review) = &mut self.overload {
            review.refused = review.refused.saturating_add(places);
        }
        Err(AdmissionRefusal { reason, wait: self.wait() })
    }

    /// Takes places for a request that is executed in any case or was checked.
    pub fn take(&mut self, now: Instant, places: u32) {
        self.measurement.advance(now, self.taken);
        self.taken = self.taken.saturating_add(places);
        if self.taken >= self.limit() {
            self.full_since.get_or_insert(now);
        }
    }

    /// Frees the places of a request that was answered `after` its arrival. Returns true if enough is measured now that the
    /// caller should call [`AdmissionPolicy::learn`].
    pub fn answered(&mut self, now: Instant, places: u32, after: Duration) -> bool {
        self.free(now, places);
        self.measurement.note_answer(places, after);
        if let Some(review) = &mut self.overload {
            review.answered = review.answered.saturating_add(places);
        }
        self.measurement.is_complete(now, self.limit())
    }

    /// Frees the places of a request that was not executed.
    pub fn free(&mut self, now: Instant, places: u32) {
        self.measurement.advance(now, self.taken);
        self.taken = self.taken.saturating_sub(places);
        if self.taken < self.limit() {
            // One free place during an overload is taken at once, so only the review ends that.
            self.full_since = None;
        }
    }

    /// Adapts the estimates and the limit to what was measured, and begins a new measurement.
    pub fn learn(&mut self, now: Instant) {
        let Some(measured) = self.measurement.finish(now) else { return };
        self.mean_answer = measured.mean_answer;
        // With fewer requests at once than the model can execute, it is only known that the throughput could be higher.
        let unused = f64::from(self.limit.shape().places()) / measured.mean_taken.max(1.0);
        let possible = measured.throughput * unused.max(1.0);
        let known = self.throughput.unwrap_or(possible);
        self.throughput = Some(known + NEWEST * (possible - known));
        if measured.was_full && self.overload.is_some() {
            self.limit.adapt(measured.throughput);
        }
    }

    /// Begins and ends the overload.
    fn review(&mut self, now: Instant) {
        let patience =
            self.mean_answer.saturating_mul(PATIENCE).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
        match &self.overload {
            None => {
                let is_full = |since: Instant| now.saturating_duration_since(since) >= patience;
                if self.full_since.is_some_and(is_full) {
                    self.overload = Some(Review::new(now));
                }
            }
            Some(review)
                if now.saturating_duration_since(review.since) >= patience * REVIEW_AFTER =>
            {
                let goes_on = review.refused > review.answered / 2;
                self.overload = goes_on.then(|| Review::new(now));
                self.full_since = None;
            }
            Some(_) => {}
        }
    }

    fn allowed(&self) -> u32 {
        let burst = if self.overload.is_some() { 1 } else { BURST };
        self.limit().saturating_mul(burst)
    }

    /// Estimates the time to the answer of a request that arrives now.
    fn time_to_answer(&self, places: u32) -> Duration {
        self.mean_of_idle().max(self.time_of(self.taken.saturating_add(places)))
    }

    /// Returns the mean time to the answer, as far as it is no wait for others.
    fn mean_of_idle(&self) -> Duration {
        if self.taken > self.limit.shape().places() { Duration::ZERO } else { self.mean_answer }
    }

    fn time_of(&self, places: u32) -> Duration {
        let Some(throughput) = self.throughput else { return Duration::ZERO };
        let seconds = f64::from(places) / throughput;
        Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_WAIT)
    }

    /// Returns when a refused client should try again: the requests that were accepted are answered by then.
    fn wait(&self) -> Duration {
        self.time_of(self.taken).clamp(Duration::from_millis(1), LONGEST_WAIT)
    }
}
