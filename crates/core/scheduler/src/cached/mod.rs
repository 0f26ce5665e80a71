//! Answers requests from the response cache: a scheduler in front of the one that executes.
//!
//! The thread that submits a request looks it up. A hit is answered at once. A miss is passed to the other scheduler, and
//! its answer is stored before it is sent. Slow look-ups run on a thread of the cache, which passes the request on.
//! Equal requests that arrive while one of them is executed wait for its answer (`flights`).

mod equal_requests;
mod leader;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_config::ModelConfig;
use galatea_response_cache::{CacheKey, Entry, LookUp, ResponseCache, Scope};
use galatea_telemetry::{FailureReason, LineLimit, ModelStatistics};
use galatea_types::{PreparedRequest, Refused, RequestContext, Responder, Result};

use self::{
    equal_requests::{EqualRequests, WaitingRequest},
    leader::LeadingRequest,
};
use crate::{
    Scheduler, accounting::RequestAccounting, completion::CompletionQueue, in_flight::InFlight,
    request_failure::RequestFailure,
};

/// The model, cache and scheduler of a [`CachedScheduler`].
pub struct CachedSpec {
    /// The configuration of the model. It sends one response to each request, which depends on no earlier request.
    pub config: Arc<ModelConfig>,
    /// The version of the model.
    pub version: i64,
    /// Separates the answers of this model from those of other models and of its own earlier loads.
    pub scope: Scope,
    /// The cache that stores the answers.
    pub cache: Arc<dyn ResponseCache>,
    /// The statistics in which requests are counted.
    pub statistics: Arc<ModelStatistics>,
    /// If true, equal requests that arrive at the same time are executed once.
    pub joins_equal: bool,
    /// The scheduler that executes requests.
    pub inner: Arc<dyn Scheduler>,
}

/// With more bytes of inputs than this, making the key takes too long for a connection's thread.
const LONG: usize = 1 << 20;

/// Looks requests up before another scheduler gets them.
pub struct CachedScheduler(Arc<Shared>);

struct Shared {
    spec: CachedSpec,
    accounting: RequestAccounting,
    flights: Option<EqualRequests>,
    /// Present if responses are sent in the order of arrival.
    order: Option<Arc<CompletionQueue>>,
    /// Look-ups in progress.
    look_ups: InFlight,
    refusals: LineLimit,
}

/// A request that is looked up or waits for an answer.
struct Request {
    request: PreparedRequest,
    context: RequestContext,
    responder: Responder,
    /// When the request arrived.
    started: Instant,
    /// The time that the look-up took.
    look_up: Duration,
}

impl CachedScheduler {
    /// Creates a cache in front of `spec.inner`.
    pub fn new(spec: CachedSpec) -> Self {
        let model = spec.config.name().clone();
        let refusals = LineLimit::new(move |count| {
            log::error!(
                "{count} more responses of model '{model}' were not inserted into the cache"
            );
        });
        Self(Arc::new(Shared {
            accounting: RequestAccounting::beside_executor(spec.statistics.clone()),
            flights: spec.joins_equal.then(EqualRequests::default),
            order: crate::queue_scheduler::preserves_ordering(&spec.config).then(Arc::default),
            look_ups: InFlight::new(spec.statistics.clock().clone()),
            refusals,
            spec,
        }))
    }
}

impl Scheduler for CachedScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let shared = &self.0;
        let (started, look_up) = (shared.now(), Duration::ZERO);
        let Some(order) = &shared.order else {
            return shared.submit(Request { request, context, responder, started, look_up });
        };
        let responder = order.clone().admit_next(responder);
        let request = Request { request, context, responder, started, look_up };
        // A refusal keeps its place in the order of responses as well.
        shared.submit(request).or_else(|refused| {
            refused.answer();
            Ok(())
        })
    }

    fn in_flight(&self) -> usize {
        let waiting = self.0.flights.as_ref().map_or(0, EqualRequests::waiting);
        self.0.spec.inner.in_flight() + waiting + self.0.look_ups.count()
    }

    fn release_abandoned(&self) -> usize {
        let abandoned =
            self.0.flights.as_ref().map(EqualRequests::take_abandoned).unwrap_or_default();
        let count = abandoned.len();
        abandoned.into_iter().for_each(|waiting| self.0.abandon(waiting));
        count + self.0.spec.inner.release_abandoned()
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        // A request that waits for an equal one ends with it, or is passed to the other scheduler before that one is idle.
        loop {
            if !self.0.look_ups.wait_until_idle(deadline)
                || !self.0.spec.inner.wait_until_idle(deadline)
            {
                return false;
            }
            if self.0.look_ups.count() == 0 {
                return true;
            }
        }
    }

    fn expect_no_more(&self) {
        self.0.spec.inner.expect_no_more();
    }

    fn close(&self) {
        self.0.look_ups.close();
        self.0.close_if_looked_up();
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        self.0.look_ups.wait_until_idle(deadline) && self.0.spec.inner.drain(deadline)
    }
}

impl Shared {
    fn now(&self) -> Instant {
        self.accounting.clock().now()
    }

    fn submit(self: &Arc<Self>, request: Request) -> Result<(), Refused> {
        let bytes: usize = request.request.inputs.iter().map(|input| input.data.len()).sum();
        match bytes > LONG {
            true => self.look_up_elsewhere(request),
            false => self.look_up(request),
        }
    }

    /// Looks a long request up on the thread for long requests, unless that thread has too much to do.
    fn look_up_elsewhere(self: &Arc<Self>, request: Request) -> Result<(), Refused> {
        if !self.look_ups.enter() {
            return Err(self.refuse(request));
        }
        let under_way = LookUpUnderWay(self.clone());
        let job = move || under_way.0.look_up(request).unwrap_or_else(Refused::answer);
        self.spec.cache.long_work().run(Box::new(job)).unwrap_or_else(|job| job());
        Ok(())
    }

    fn look_up(self: &Arc<Self>, mut request: Request) -> Result<(), Refused> {
        let Some(key) = CacheKey::of(&self.spec.scope, &request.request) else {
            // No key can be made: an input is in memory that the cache cannot read.
            let Request { request, context, responder, .. } = request;
            return self.spec.inner.submit(request, context, responder);
        };
        let found = self.spec.cache.look_up(&key);
        request.look_up = self.accounting.clock().since(request.started);
        match found {
            LookUp::Hit(entry) => {
                self.answer(request, &entry, Duration::ZERO);
                Ok(())
            }
            LookUp::Miss => self.miss(key, request),
            LookUp::Elsewhere => self.fetch(key, request),
        }
    }

    fn miss(self: &Arc<Self>, key: CacheKey, request: Request) -> Result<(), Refused> {
        let Some((leader, request)) = self.lead(key, request) else { return Ok(()) };
        // The previous execution of an equal request may have stored its answer after the look-up.
        if leader.has_flight()
            && let Some(entry) = self.spec.cache.look_again(&key)
        {
            leader.found(request, &entry);
            return Ok(());
        }
        leader.execute(request)
    }

    fn fetch(self: &Arc<Self>, key: CacheKey, request: Request) -> Result<(), Refused> {
        if !self.look_ups.enter() {
            return Err(self.refuse(request));
        }
        let under_way = LookUpUnderWay(self.clone());
        let Some((leader, mut request)) = self.lead(key, request) else { return Ok(()) };
        self.spec.cache.fetch(
            key,
            Box::new(move |found| {
                let shared = &under_way.0;
                request.look_up = shared.accounting.clock().since(request.started);
                match found.filter(|entry| shared.fits(entry, &request.request)) {
                    Some(entry) => leader.found(request, &entry),
                    None => leader.execute(request).unwrap_or_else(Refused::answer),
                }
            }),
        );
        Ok(())
    }

    /// Returns the request with its leader, or `None` if it waits for an equal one.
    fn lead(
        self: &Arc<Self>,
        key: CacheKey,
        request: Request,
    ) -> Option<(Arc<LeadingRequest>, Request)> {
        let has_limit = request.request.timeout.is_some_and(|timeout| !timeout.is_zero());
        let (flight, request) = match &self.flights {
            Some(flights) if !has_limit => {
                let entered = flights.enter(key, request, self.now());
                if entered.is_none() {
                    self.spec.cache.miss_was_shared();
                }
                entered?
            }
            _ => (None, request),
        };
        Some((LeadingRequest::new(self.clone(), key, flight), request))
    }

    /// Counts a hit and answers it.
    fn answer(&self, request: Request, entry: &Entry, waited: Duration) {
        let Request { request, mut context, responder, look_up, .. } = request;
        self.accounting.cache_hit(&mut context, waited, look_up);
        let (model, id) = (self.spec.config.name().clone(), request.into_request().id);
        responder.finish(Ok(entry.response(model, self.spec.version, id)));
    }

    /// Returns true if an entry of the cache can be an answer of this model to this request.
    fn fits(&self, entry: &Entry, request: &PreparedRequest) -> bool {
        let outputs = self.spec.config.outputs();
        let is_known = |name: &str, data_type| {
            outputs.iter().any(|spec| *spec.name == *name && spec.data_type == data_type)
        };
        let fits = entry.outputs().iter().all(|tensor| {
            is_known(&tensor.name, tensor.data_type) && request.wants_output(&tensor.name)
        });
        if !fits && self.refusals.admits() {
            let model = self.spec.config.name();
            log::error!("the response cache has a response that does not fit model '{model}'");
        }
        fits
    }

    /// Counts and answers a request whose client has gone.
    fn abandon(&self, waiting: WaitingRequest) {
        let Request { request, mut context, responder, .. } = waiting.request;
        let error = RequestFailure::Abandoned.into();
        self.accounting.failed(&request.id, &mut context, FailureReason::Canceled, &error);
        responder.finish(Err(error));
    }

    fn refuse(&self, request: Request) -> Refused {
        let Request { request, mut context, responder, .. } = request;
        let error = RequestFailure::Closed { prefix: request.message_prefix() }.into();
        self.accounting.failed(&request.id, &mut context, FailureReason::Rejected, &error);
        Refused::new(error, responder)
    }

    /// Closes the other scheduler after the last look-up: until then it must take requests.
    fn close_if_looked_up(&self) {
        if self.look_ups.is_closed_and_idle() {
            self.spec.inner.close();
        }
    }
}

/// A look-up in progress; it counts as a request in flight until it is dropped.
struct LookUpUnderWay(Arc<Shared>);

impl Drop for LookUpUnderWay {
    fn drop(&mut self) {
        self.0.look_ups.leave();
        self.0.close_if_looked_up();
    }
}
