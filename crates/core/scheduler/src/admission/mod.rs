//! Refuses requests that a model has no time for, before they wait: a scheduler in front of the one that executes.
//!
//! Only first requests of clients are refused. Steps of ensembles, calls of models and requests that continue a sequence
//! belong to work that was accepted; they only take their places. See `docs/adr/0047-admission.md`.

mod admitting_scheduler;
mod concurrency_limit;
mod measurement;
mod policy;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics, RefusalReason};
use galatea_types::{
    Cancellation, Clock, CorrelationId, Error, HeldPlace, InferRequest, LockExt, Origin,
    Overloaded, PreparedRequest, RequestContext, Result,
};

pub use self::admitting_scheduler::AdmittingScheduler;
use self::policy::{AdmissionPolicy, AdmissionRefusal, Overload};
use crate::{QueueScheduler, model_shape::ModelShape};

/// The shape of an ensemble, whose steps have queues of their own.
const ENSEMBLE: ModelShape = ModelShape { instances: 1, per_execution: 8, is_open: true };

/// Decides which requests to one model version are accepted.
pub struct Admission {
    config: Arc<ModelConfig>,
    statistics: Arc<ModelStatistics>,
    /// The queue of the model's instances; none for an ensemble. It is weak because queued requests hold places.
    instances: Weak<QueueScheduler>,
    policy: Mutex<AdmissionPolicy>,
}

impl Admission {
    /// Creates the admission of a model with the queue of its instances, or without one for an ensemble.
    pub fn new(
        config: Arc<ModelConfig>,
        statistics: Arc<ModelStatistics>,
        instances: Option<&Arc<QueueScheduler>>,
    ) -> Arc<Self> {
        let shape = instances.map_or(ENSEMBLE, |queue| queue.shape());
        let policy = Mutex::new(AdmissionPolicy::new(shape, statistics.clock().now()));
        let instances = instances.map(Arc::downgrade).unwrap_or_default();
        Arc::new(Self { config, statistics, instances, policy })
    }

    /// Returns the number of requests, or of items for a model that batches, that may be in progress in an overload.
    pub fn limit(&self) -> u32 {
        self.policy.lock_unpoisoned().limit()
    }

    /// Refuses a client's request that is not decoded yet, if it would be refused in any case. A request that may continue a
    /// sequence is not refused here.
    ///
    /// # Errors
    /// `Unavailable`, caused by [`Overloaded`]. It is counted.
    pub fn check_early(&self, deadline: Option<Instant>) -> Result<()> {
        if self.has_sequences() {
            return Ok(());
        }
        let now = self.clock().now();
        let budget = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let checked = self.policy.lock_unpoisoned().check(now, 1, budget);
        checked.map_err(|refusal| {
            self.statistics.record_refusal(RefusalReason::Overload);
            self.statistics.record_failure(FailureReason::Rejected, Duration::ZERO);
            self.error("", refusal)
        })
    }

    /// Gives a request its place, or refuses it.
    fn admit(
        self: &Arc<Self>,
        request: &PreparedRequest,
        context: &mut RequestContext,
    ) -> Result<(), AdmissionRefusal> {
        let now = self.clock().now();
        let places = self.places_of(request);
        {
            let mut policy = self.policy.lock_unpoisoned();
            if self.may_be_refused(request, context) {
                policy.check(now, places, budget(request, context, now))?;
            }
            policy.take(now, places);
        }
        let (admission, cancellation) = (self.clone(), context.cancellation.clone());
        let place = Place { admission, places, since: now, cancellation, is_forgone: false };
        context.place = Some(Box::new(place));
        Ok(())
    }

    fn may_be_refused(&self, request: &InferRequest, context: &RequestContext) -> bool {
        let continues = self.has_sequences()
            && request.correlation_id != CorrelationId::None
            && !request.sequence_start;
        matches!(context.origin, Origin::Client(_)) && !continues
    }

    /// Returns true if a request may be part of a sequence.
    fn has_sequences(&self) -> bool {
        matches!(self.config.scheduling(), Scheduling::Sequence(_) | Scheduling::Ensemble(_))
    }

    fn places_of(&self, request: &PreparedRequest) -> u32 {
        match self.config.scheduling() {
            Scheduling::Dynamic(_) => request.batch_size().max(1),
            _ => 1,
        }
    }

    fn free(&self, place: &Place) {
        let now = self.clock().now();
        let mut policy = self.policy.lock_unpoisoned();
        if place.is_forgone || place.cancellation.is_cancelled() {
            return policy.free(now, place.places);
        }
        let after = now.saturating_duration_since(place.since);
        if !policy.answered(now, place.places, after) {
            return;
        }
        policy.learn(now);
        drop(policy);
        // Once for many requests. The queue has a lock of its own.
        if let Some(queue) = self.instances.upgrade() {
            self.policy.lock_unpoisoned().set_shape(queue.shape());
        }
    }

    fn clock(&self) -> &Clock {
        self.statistics.clock()
    }

    fn error(&self, prefix: &str, refusal: AdmissionRefusal) -> Error {
        let model = self.config.name();
        let reason = match refusal.reason {
            Overload::TooLate { estimate, budget } => format!(
                "the answer would come in about {} ms, and the client waits for {} ms",
                estimate.as_millis(),
                budget.as_millis()
            ),
            Overload::Full { limit } => {
                format!("its {limit} places for requests in progress are taken")
            }
        };
        let text = format!(
            "{prefix}model '{model}' is overloaded: {reason} (--admission); try again later"
        );
        Overloaded::new(text, refusal.wait).into()
    }
}

/// Returns the time that the client still waits: until its deadline, or for the parameter `timeout`.
fn budget(request: &InferRequest, context: &RequestContext, now: Instant) -> Option<Duration> {
    let of_deadline = context.deadline.map(|deadline| deadline.saturating_duration_since(now));
    let spent = now.saturating_duration_since(context.timeline.received);
    let timeout = request.timeout.filter(|timeout| !timeout.is_zero());
    let of_timeout = timeout.map(|timeout| timeout.saturating_sub(spent));
    of_deadline.into_iter().chain(of_timeout).min()
}

/// The places of one request.
struct Place {
    admission: Arc<Admission>,
    places: u32,
    since: Instant,
    cancellation: Cancellation,
    is_forgone: bool,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("places", &self.places).finish_non_exhaustive()
    }
}

impl HeldPlace for Place {
    fn forgo(&mut self) {
        self.is_forgone = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.free(self);
    }
}
