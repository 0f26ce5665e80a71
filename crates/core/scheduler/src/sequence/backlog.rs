//! Sequences that wait for a slot, with their requests so far.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

use galatea_types::CorrelationId;

use super::key::SequenceRequest;

/// Sequences without a slot, in the order of their first requests.
pub(super) struct SequenceBacklog<T> {
    /// Each has at least one request.
    waiting: BTreeMap<u64, WaitingSequence<T>>,
    next_number: u64,
    requests: usize,
    /// The time at which the first of them expires.
    next_expiry: Option<Instant>,
}

/// A sequence without a slot.
pub(super) struct WaitingSequence<T> {
    pub requests: VecDeque<T>,
    pub id: CorrelationId,
    /// The earliest time-out of a request.
    expires_at: Option<Instant>,
}

impl<T: SequenceRequest> WaitingSequence<T> {
    /// Returns true if the client of one of its requests has gone.
    pub fn is_abandoned(&self) -> bool {
        self.requests.iter().any(T::is_abandoned)
    }
}

impl<T> Default for SequenceBacklog<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), next_number: 0, requests: 0, next_expiry: None }
    }
}

impl<T: SequenceRequest> SequenceBacklog<T> {
    /// Returns the number of requests of all sequences.
    pub fn len(&self) -> usize {
        self.requests
    }

    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Returns the number for a new sequence.
    pub fn next_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Adds a request to the sequence of this number.
    pub fn push(&mut self, number: u64, request: T, now: Instant) {
        let timeout = request.placement().timeout.filter(|timeout| !timeout.is_zero());
        let expires_at = timeout.and_then(|timeout| now.checked_add(timeout));
        let waiting = self.waiting.entry(number).or_insert_with(|| WaitingSequence {
            requests: VecDeque::new(),
            id: request.correlation_id().clone(),
            expires_at: None,
        });
        waiting.requests.push_back(request);
        waiting.expires_at = earliest(waiting.expires_at, expires_at);
        self.requests += 1;
        self.next_expiry = earliest(self.next_expiry, expires_at);
    }

    /// Takes the sequence that has waited longest.
    pub fn pop_first(&mut self) -> Option<(u64, WaitingSequence<T>)> {
        let first = self.waiting.pop_first()?;
        self.requests -= first.1.requests.len();
        Some(first)
    }

    /// Takes all sequences for which `is_over` holds.
    pub fn remove_where(
        &mut self,
        is_over: impl Fn(&WaitingSequence<T>) -> bool,
    ) -> Vec<(u64, WaitingSequence<T>)> {
        let over: Vec<_> = self.waiting.extract_if(.., |_, waiting| is_over(waiting)).collect();
        self.requests -= over.iter().map(|(_, waiting)| waiting.requests.len()).sum::<usize>();
        over
    }

    /// Takes the sequences with a request that waited too long.
    pub fn take_expired(&mut self, now: Instant) -> Vec<(u64, WaitingSequence<T>)> {
        if self.next_expiry.is_none_or(|expiry| now < expiry) {
            return Vec::new();
        }
        let over = self.remove_where(|waiting| waiting.expires_at.is_some_and(|at| at <= now));
        self.next_expiry = self.waiting.values().filter_map(|waiting| waiting.expires_at).min();
        over
    }

    /// Returns the time at which a sequence may have waited too long.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    [a, b].into_iter().flatten().min()
}
