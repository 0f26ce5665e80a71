//! A request in the queue of a model.

use std::time::Instant;

use galatea_backend::Job;

use crate::queue::{JoinRules, Placement, Queued};

/// A queued request with its place in the order of arrival.
pub(crate) struct QueuedRequest {
    pub job: Job,
    pub arrival: u64,
}

impl QueuedRequest {
    /// A request on its way to the queue, which numbers it.
    pub fn new(job: Job) -> Self {
        Self { job, arrival: 0 }
    }
}

impl Queued for QueuedRequest {
    fn item_count(&self) -> u64 {
        u64::from(self.job.request.batch_size.max(1))
    }

    fn queued_at(&self) -> Instant {
        self.job.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.job.request.cancellation.is_cancelled() || self.job.responder.is_closed()
    }

    fn placement(&self) -> Placement {
        let request = &self.job.request;
        Placement { priority: request.priority, timeout: request.timeout }
    }

    fn set_arrival(&mut self, arrival: u64) {
        self.arrival = arrival;
    }

    fn can_join(&self, other: &Self, rules: &JoinRules) -> bool {
        rules.can_join(&self.job.request, &other.job.request)
    }
}
