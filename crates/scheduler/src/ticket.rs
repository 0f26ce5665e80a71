use std::time::Instant;

use galatea_backend::Job;

use crate::queue::Queued;

/// A queued request and its place in the order of arrival.
pub(crate) struct Ticket {
    pub job: Job,
    pub place: u64,
}

impl Queued for Ticket {
    fn item_count(&self) -> u64 {
        u64::from(self.job.request.batch_size.max(1))
    }

    fn queued_at(&self) -> Instant {
        self.job.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.job.request.cancellation.is_cancelled() || self.job.responder.is_closed()
    }
}
