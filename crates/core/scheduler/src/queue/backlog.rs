//! All requests that wait for the instances of one queue, and the rules that order them.

use std::time::{Duration, Instant};

use galatea_config::{ModelConfig, Scheduling};

use super::{
    auto_delay::AutoDelay,
    batching::{BatchRules, Decision, PullRequest, next_batch},
    join_rules::{Extent, JoinRules},
    priority_queue::{DropReason, PriorityQueue},
    queue_entry::QueueEntry,
};

/// The waiting requests of one queue.
pub(crate) struct Backlog<T> {
    requests: PriorityQueue<T>,
    rules: BatchRules,
    join_rules: JoinRules,
    /// Learns how long a batch should wait; present if the server chooses the delay.
    auto_delay: Option<Box<AutoDelay>>,
    /// The place of the next request in the order of arrival.
    next_arrival: u64,
    /// Requests are held until this many wait; 0 once they are released.
    hold_until_queued: usize,
}

impl<T: QueueEntry> Backlog<T> {
    /// Creates the backlog of all requests of a model, or of one instance whose sequences are batched by age.
    pub fn from_config(config: &ModelConfig, hold_until_queued: usize) -> Self {
        let (rules, join_rules) = (BatchRules::from_config(config), JoinRules::from_config(config));
        let dynamic = match config.scheduling() {
            Scheduling::Dynamic(dynamic) => Some(dynamic),
            _ => None,
        };
        // If requests of two clients may not fit together, turns of one request would make batches of one.
        let turn_items = if join_rules.keep_apart() { rules.max_items } else { 1 };
        let learns_delay = dynamic.is_some_and(|dynamic| dynamic.learns_delay);
        Self {
            requests: PriorityQueue::new(dynamic, turn_items),
            rules,
            join_rules,
            auto_delay: learns_delay.then(Box::<AutoDelay>::default),
            next_arrival: 0,
            hold_until_queued,
        }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns the sum of the batch sizes of all waiting requests.
    pub fn item_count(&self) -> u64 {
        self.requests.item_count()
    }

    /// Returns true if decisions depend on the time.
    pub fn needs_clock(&self) -> bool {
        self.rules.has_delay() || self.requests.has_timeouts()
    }

    /// Returns true if requests may fail because they waited too long.
    pub fn rejects_late(&self) -> bool {
        self.requests.rejects_late()
    }

    /// Returns true if several requests may be executed together.
    pub fn joins_requests(&self) -> bool {
        self.rules.joins_requests
    }

    /// Appends a request and returns when it expires. Returns the request if the queue is full.
    pub fn push(&mut self, mut request: T) -> Result<Option<Instant>, T> {
        request.set_arrival(self.next_arrival);
        let queued_at = request.queued_at();
        let expires_at = self.requests.push(request)?;
        self.next_arrival += 1;
        if let Some(auto_delay) = &mut self.auto_delay {
            auto_delay.arrived(queued_at, self.requests.item_count());
        }
        Ok(expires_at)
    }

    /// Puts a request that was taken but not executed back to the front.
    pub fn push_front(&mut self, request: T) {
        self.requests.push_front(request);
    }

    /// Returns true if a new request joins the next batch. Returns false with priorities, because the request may change the
    /// next batch.
    pub fn fits_next_batch(&self, request: &T) -> bool {
        let first = self.requests.front();
        !self.requests.has_priorities()
            && first.is_none_or(|first| first.can_join(request, &self.join_rules))
    }

    /// Decides what an idle instance does now. `is_closed` is true if no more requests will come, so that waiting gains
    /// nothing.
    pub fn decide(&mut self, now: Instant, is_closed: bool) -> Decision {
        self.decide_beside(0, now, is_closed)
    }

    /// Does the same while `others` more instances are idle.
    pub fn decide_beside(&mut self, others: usize, now: Instant, is_closed: bool) -> Decision {
        if self.is_held(is_closed) {
            return Decision::Empty;
        }
        let (join_rules, items) = (&self.join_rules, self.requests.item_count());
        // A learned delay does not include time in which every instance was busy.
        let delay_began =
            self.auto_delay.as_ref().map(|delay| delay.waiting_since().unwrap_or(now));
        let mut next = |is_flushing| {
            let joins =
                |first: &T, new: &T, extent: &mut Extent| new.joins(first, extent, join_rules);
            let turn = PullRequest { now, delay_began, is_flushing };
            next_batch(&mut self.requests, &self.rules, joins, turn)
        };
        let decision = next(is_closed);
        let (Decision::Wait(batch), Some(auto_delay)) = (decision, &mut self.auto_delay) else {
            return decision;
        };
        // No wait means to decide as if no more requests will come.
        auto_delay.decide(batch, now, items, others + 1).map_or_else(|| next(true), Decision::Wait)
    }

    /// Returns true if [`Backlog::begins`] and [`Backlog::ended`] must be called.
    pub fn learns_delay(&self) -> bool {
        self.auto_delay.is_some()
    }

    /// Records that an instance begins to execute these requests, which were taken.
    pub fn begins(&mut self, instance: usize, requests: &[T], now: Instant) {
        if let Some(auto_delay) = &mut self.auto_delay {
            auto_delay.begins(instance, requests.iter().map(T::item_count).sum(), now);
        }
    }

    /// Records that an instance has finished its requests.
    pub fn ended(&mut self, instance: usize, now: Instant) {
        if let Some(auto_delay) = &mut self.auto_delay {
            auto_delay.ended(instance, self.requests.item_count(), now);
        }
    }

    /// Returns the mean wait of recent batches, if it is learned.
    pub fn learned_delay(&self) -> Option<Duration> {
        self.auto_delay.as_ref().map(|auto_delay| auto_delay.mean_wait())
    }

    /// Returns true if requests are held until enough of them wait. Once released, they are never held again.
    pub fn is_held(&mut self, is_closed: bool) -> bool {
        if self.len() >= self.hold_until_queued || is_closed {
            self.hold_until_queued = 0;
        }
        self.hold_until_queued > 0
    }

    /// Removes the first `count` requests.
    pub fn take(&mut self, count: usize) -> Vec<T> {
        self.requests.take(count)
    }

    /// Returns true if there is a first request and its client still waits.
    pub fn is_front_wanted(&self) -> bool {
        self.requests.front().is_some_and(|first| !first.is_abandoned())
    }

    /// Removes all requests whose clients have gone; the caller must answer each.
    pub fn take_abandoned(&mut self) -> Vec<T> {
        self.requests.take_abandoned()
    }

    /// Removes all requests that fail because they waited too long; the caller must answer each. Also returns when the next one
    /// may fail.
    pub fn take_expired(&mut self, now: Instant) -> (Vec<T>, Option<Instant>) {
        self.requests.take_expired(now)
    }

    /// Removes the requests that the last decision found expired or abandoned; the caller must answer each.
    pub fn take_dropped(&mut self) -> Vec<(T, DropReason)> {
        self.requests.take_dropped()
    }
}
