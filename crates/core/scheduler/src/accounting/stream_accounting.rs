//! Counting requests whose responses come after `execute` has returned, and the states that they leave.

use std::sync::Arc;

use galatea_backend::{Batch, RequestEnd, RequestObserver, SequenceStates};
use galatea_telemetry::ResponseRecord;
use galatea_types::RequestContext;

use super::request_accounting::{Items, RequestAccounting, RequestCount};
use crate::{
    open_streams::{OpenStream, OpenStreams},
    request_queue::RequestQueue,
    sequence::{SlotTicket, StepEnd},
};

/// The requests of one execution that are answered after `execute` has returned.
///
/// The execution counts once for all its requests, as soon as `execute` returns or the first of them ends: a client
/// that has its last response finds it counted.
pub(crate) struct StreamAccounting {
    /// Where its requests came from; `None`: they warm the instance up.
    origin: Option<StreamOrigin>,
    accounting: Arc<RequestAccounting>,
    items: Items,
    /// Whether the execution was counted.
    pub once: RequestCount,
    /// The instance is needed until all of them have ended.
    _open: OpenStream,
}

/// Where the requests of an execution came from.
pub(crate) struct StreamOrigin {
    pub queue: Arc<RequestQueue>,
    /// Number of the instance that has taken them.
    pub instance: usize,
    /// The step of each row whose sequence waits for the states that it leaves.
    pub steps: Vec<Option<SlotTicket>>,
}

impl StreamAccounting {
    /// For the requests that leave this batch, whose execution begins.
    pub fn observe(
        batch: &mut Batch,
        origin: Option<StreamOrigin>,
        accounting: Arc<RequestAccounting>,
        streams: &Arc<OpenStreams>,
    ) -> Arc<Self> {
        let (items, open) = (Items::of(batch), streams.open(batch.execution().received));
        let once = RequestCount::default();
        let streams = Arc::new(Self { origin, accounting, items, once, _open: open });
        batch.observe(streams.clone());
        streams
    }
}

impl RequestObserver for StreamAccounting {
    fn responds_first(&self, context: &RequestContext) {
        self.accounting.responds_first(context);
    }

    fn reported(&self, number: usize, record: &ResponseRecord) {
        self.accounting.statistics.record_response(number, record);
    }

    fn ended(&self, end: RequestEnd<'_>) {
        self.accounting.request_ended(end, &self.once, self.items);
    }

    fn take_states(&self, row: usize, states: SequenceStates) {
        let Some(StreamOrigin { queue, instance, steps }) = &self.origin else { return };
        if let Some(ticket) = steps.get(row).copied().flatten() {
            queue.finish_step(*instance, StepEnd { ticket, states, again: None });
        }
    }

    fn left(&self) {
        if let Some(origin) = &self.origin {
            origin.queue.finish(1);
        }
    }
}
