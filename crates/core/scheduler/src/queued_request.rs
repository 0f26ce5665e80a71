//! A request in the queue of a model.

use std::time::Instant;

use galatea_backend::{PendingRequest, SequenceStates};
use galatea_types::CorrelationId;

use crate::{
    queue::{Extent, JoinRules, Placement, QueueEntry},
    sequence::SequenceRequest,
};

/// A queued request with its place in the order of arrival.
pub(crate) struct QueuedRequest {
    pub pending: PendingRequest,
    pub arrival: u64,
}

impl QueuedRequest {
    /// Creates a request without a number; the queue numbers it.
    pub fn new(pending: PendingRequest) -> Self {
        Self { pending, arrival: 0 }
    }
}

impl QueueEntry for QueuedRequest {
    fn item_count(&self) -> u64 {
        u64::from(self.pending.request.batch_size().max(1))
    }

    fn queued_at(&self) -> Instant {
        let timeline = &self.pending.context.timeline;
        timeline.queued.unwrap_or(timeline.received)
    }

    fn is_abandoned(&self) -> bool {
        self.pending.context.cancellation.is_cancelled() || self.pending.responder.is_closed()
    }

    fn placement(&self) -> Placement {
        let request = &self.pending.request;
        Placement { priority: request.priority, timeout: request.timeout }
    }

    fn client(&self) -> Option<u64> {
        self.pending.context.identity.as_ref().map(|identity| identity.key())
    }

    fn set_arrival(&mut self, arrival: u64) {
        self.arrival = arrival;
    }

    fn joins(&self, first: &Self, extent: &mut Extent, rules: &JoinRules) -> bool {
        rules.joins(&first.pending.request, &self.pending.request, extent)
    }

    fn can_join(&self, other: &Self, rules: &JoinRules) -> bool {
        rules.can_join(&self.pending.request, &other.pending.request)
    }
}

impl SequenceRequest for QueuedRequest {
    type States = SequenceStates;

    fn state_bytes(states: &SequenceStates) -> usize {
        states.counted_bytes()
    }

    fn correlation_id(&self) -> &CorrelationId {
        &self.pending.request.correlation_id
    }

    fn is_start(&self) -> bool {
        self.pending.request.sequence_start
    }

    fn is_end(&self) -> bool {
        self.pending.request.sequence_end
    }

    fn begin_own_sequence(&mut self, number: u64) {
        let request = &mut self.pending.request;
        request.set_correlation_id(CorrelationId::Number(number));
        request.set_sequence_flags(true, false);
    }

    fn continue_sequence(&mut self, now: Instant) {
        self.pending.request.set_sequence_flags(false, false);
        self.pending.context.timeline.queued = Some(now);
    }
}
