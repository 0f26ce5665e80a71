//! Joins equal requests that arrive at the same time: the first is executed, the others wait for its answer.

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_response_cache::CacheKey;

use super::Request;
use crate::sync::{LockExt, Mutex};

/// The largest number of requests to one model that wait for equal ones.
const MAX_WAITING: usize = 4096;

/// The requests to one model that are being executed, and the equal requests that wait for each.
#[derive(Default)]
pub(super) struct EqualRequests(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    flights: HashMap<FlightKey, Vec<WaitingRequest>>,
    waiting: usize,
}

/// The key of one execution. The priority is part of it: a request never waits for an equal one of lower priority.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FlightKey {
    request: CacheKey,
    priority: u64,
}

/// A request that waits for the answer to an equal one.
pub(super) struct WaitingRequest {
    pub request: Request,
    since: Instant,
}

impl WaitingRequest {
    pub fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    fn is_abandoned(&self) -> bool {
        let Request { context, responder, .. } = &self.request;
        context.cancellation.is_cancelled() || responder.is_closed()
    }
}

impl EqualRequests {
    /// Returns the execution for this request, or `None` if the request waits for an equal one that is being executed.
    /// Equal requests wait for the execution until it ends. With too many waiting, the request is executed alone.
    pub fn enter(
        &self,
        request: CacheKey,
        pending: Request,
        now: Instant,
    ) -> Option<(Option<SharedExecution>, Request)> {
        let key = FlightKey { request, priority: pending.request.priority };
        let mut table = self.0.lock_unpoisoned();
        let Table { flights, waiting } = &mut *table;
        match flights.entry(key) {
            hash_map::Entry::Vacant(place) => {
                place.insert(Vec::new());
                Some((Some(SharedExecution { key, table: self.0.clone() }), pending))
            }
            hash_map::Entry::Occupied(_) if *waiting >= MAX_WAITING => Some((None, pending)),
            hash_map::Entry::Occupied(mut flight) => {
                *waiting += 1;
                flight.get_mut().push(WaitingRequest { request: pending, since: now });
                None
            }
        }
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.0.lock_unpoisoned().waiting
    }

    /// Removes and returns waiting requests whose clients have gone.
    pub fn take_abandoned(&self) -> Vec<WaitingRequest> {
        let mut table = self.0.lock_unpoisoned();
        let Table { flights, waiting } = &mut *table;
        let mut abandoned = Vec::new();
        for flight in flights.values_mut() {
            abandoned.extend(flight.extract_if(.., |waiting| waiting.is_abandoned()));
        }
        *waiting -= abandoned.len();
        abandoned
    }
}

/// A request that is being executed, and the equal requests that wait for its answer.
pub(super) struct SharedExecution {
    key: FlightKey,
    table: Arc<Mutex<Table>>,
}

impl SharedExecution {
    /// Returns true if an equal request waits for this execution.
    pub fn is_awaited(&self) -> bool {
        let table = self.table.lock_unpoisoned();
        table.flights.get(&self.key).is_some_and(|waiting| !waiting.is_empty())
    }

    /// Ends the execution and returns the requests that wait for it. A later equal request starts a new execution.
    pub fn land(self) -> Vec<WaitingRequest> {
        let mut table = self.table.lock_unpoisoned();
        let waiting = table.flights.remove(&self.key).unwrap_or_default();
        table.waiting -= waiting.len();
        waiting
    }
}
