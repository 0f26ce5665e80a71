//! A request that is executed: its response goes to its client, to the cache and to equal requests that wait.

use std::{sync::Arc, time::Duration};

use galatea_response_cache::{CacheKey, Entry, Insertion, Refusal};
use galatea_types::{InferResponse, Refused, Responder, Response, ResponseSink, Result};

use super::{
    Request, Shared,
    equal_requests::{SharedExecution, WaitingRequest},
};
use crate::sync::{LockExt, Mutex};

/// A request that the cache could not answer.
///
/// If it is dropped without an answer, each request that waits for it is executed by itself.
pub(super) struct LeadingRequest {
    shared: Arc<Shared>,
    key: CacheKey,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Present until the last response.
    flight: Option<SharedExecution>,
    responder: Option<Responder>,
    look_up: Duration,
    /// The answer for the requests that wait.
    entry: Option<Entry>,
}

impl LeadingRequest {
    /// Creates the leading request. Without a `flight` no other request waits for it.
    pub fn new(shared: Arc<Shared>, key: CacheKey, flight: Option<SharedExecution>) -> Arc<Self> {
        let state = State { flight, ..State::default() };
        Arc::new(Self { shared, key, state: Mutex::new(state) })
    }

    pub fn has_flight(&self) -> bool {
        self.state.lock_unpoisoned().flight.is_some()
    }

    /// Answers the request with an entry that the cache has after all.
    pub fn found(&self, request: Request, entry: &Entry) {
        let waiting = self.land();
        self.shared.answer(request, entry, Duration::ZERO);
        self.go_on(waiting, Some(entry));
    }

    /// Hands the request to the scheduler that executes it.
    pub fn execute(self: Arc<Self>, request: Request) -> Result<(), Refused> {
        let Request { request, context, responder, look_up, .. } = request;
        {
            let mut state = self.state.lock_unpoisoned();
            state.responder = Some(responder);
            state.look_up = look_up;
        }
        let answers = Responder::calling(Answers(self.clone()));
        self.shared.spec.inner.submit(request, context, answers).map_err(|refused| {
            let error = refused.into_error();
            self.go_on(self.land(), None);
            let responder = self.state.lock_unpoisoned().responder.take();
            Refused::new(error, responder.unwrap_or_else(Responder::spent))
        })
    }

    fn respond(&self, response: Response) {
        let Response { result, is_final } = response;
        match &result {
            Some(Ok(response)) => self.keep(response),
            Some(Err(_)) => {
                self.shared.accounting.statistics.record_cache_miss(self.look_up(), None)
            }
            None => {}
        }
        let Some(mut responder) = self.state.lock_unpoisoned().responder.take() else { return };
        if !is_final {
            if let Some(result) = result {
                responder.send(result);
            }
            self.state.lock_unpoisoned().responder = Some(responder);
            return;
        }
        let waiting = self.land();
        match result {
            Some(result) => responder.finish(result),
            None => responder.close(),
        }
        let entry = self.state.lock_unpoisoned().entry.take();
        self.go_on(waiting, entry.as_ref());
    }

    /// Stores an answer and counts the miss. As in Triton, an answer that another request stored meanwhile does not count.
    fn keep(&self, response: &InferResponse) {
        let clock = self.shared.accounting.clock();
        let started = clock.now();
        let (inserted, entry) = self.insert(response);
        if let Some(Insertion::Refused(refusal)) = &inserted {
            self.log(*refusal);
        }
        if !matches!(inserted, Some(Insertion::AlreadyThere)) {
            self.shared
                .accounting
                .statistics
                .record_cache_miss(self.look_up(), Some(clock.since(started)));
        }
        self.state.lock_unpoisoned().entry = entry;
    }

    /// Inserts the answer, unless an output is not in host memory. An answer that is too large for the cache is copied only if
    /// a request waits for it.
    fn insert(&self, response: &InferResponse) -> (Option<Insertion>, Option<Entry>) {
        let (size, limit) = (Entry::size_of(response), self.shared.spec.cache.largest_entry());
        if size > limit {
            let entry = if self.is_awaited() { Entry::of(response) } else { None };
            return (Some(Insertion::Refused(Refusal { size, limit })), entry);
        }
        let Some(entry) = Entry::of(response) else { return (None, None) };
        (Some(self.shared.spec.cache.insert(self.key, &entry)), Some(entry))
    }

    fn log(&self, refusal: Refusal) {
        if self.shared.refusals.admits() {
            let key = self.key;
            log::error!("Failed to insert key [{key}] into response cache: {refusal}");
        }
    }

    fn look_up(&self) -> Duration {
        self.state.lock_unpoisoned().look_up
    }

    fn is_awaited(&self) -> bool {
        self.state.lock_unpoisoned().flight.as_ref().is_some_and(SharedExecution::is_awaited)
    }

    fn land(&self) -> Vec<WaitingRequest> {
        let flight = self.state.lock_unpoisoned().flight.take();
        flight.map(SharedExecution::land).unwrap_or_default()
    }

    /// Answers the requests that waited. Without an answer each is executed by itself: the first request may have failed
    /// because of its own client, which says nothing about the others.
    fn go_on(&self, waiting: Vec<WaitingRequest>, entry: Option<&Entry>) {
        for waiting in waiting {
            let waited = waiting.waited(self.shared.accounting.clock().now());
            match entry {
                Some(entry) => self.shared.answer(waiting.request, entry, waited),
                None => {
                    let alone = Self::new(self.shared.clone(), self.key, None);
                    alone.execute(waiting.request).unwrap_or_else(Refused::answer);
                }
            }
        }
    }

    /// Returns true if no client waits for the answer any more.
    fn is_closed(&self) -> bool {
        // `try_lock`, because this is called while queues are locked and must not wait.
        self.state.try_lock().is_ok_and(|state| {
            let has_left = state.responder.as_ref().is_some_and(Responder::is_closed);
            has_left && !state.flight.as_ref().is_some_and(SharedExecution::is_awaited)
        })
    }
}

impl Drop for LeadingRequest {
    fn drop(&mut self) {
        let waiting = self.land();
        self.go_on(waiting, None);
    }
}

/// Receives the response to the leading request.
struct Answers(Arc<LeadingRequest>);

impl ResponseSink for Answers {
    fn respond(&mut self, response: Response) {
        self.0.respond(response);
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
