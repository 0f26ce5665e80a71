use std::time::Instant;

use galatea_backend::Job;

use crate::{desk::item_count, queue::Queued};

/// A queued request and its place in the order of arrival.
pub(crate) struct Ticket {
    pub job: Job,
    pub place: u64,
}

impl Queued for Ticket {
    fn item_count(&self) -> u64 {
        item_count(&self.job.request)
    }

    fn queued_at(&self) -> Instant {
        self.job.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.job.request.cancellation.is_cancelled() || self.job.responder.is_closed()
    }
}
