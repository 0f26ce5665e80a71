//! Counts requests that are answered after `execute` has returned, and reports the states that they leave.

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
/// The execution counts once for all its requests, as soon as `execute` returns or the first of them ends. So a client
/// that has its last response finds it counted.
pub(crate) struct StreamAccounting {
    /// The queue and instance of the requests; `None` for requests of a warm-up.
    origin: Option<StreamOrigin>,
    accounting: Arc<RequestAccounting>,
    items: Items,
    /// Makes sure that the execution is counted once.
    pub once: RequestCount,
    /// Keeps the instance alive until all of these requests have ended.
    _open: OpenStream,
}

/// The queue and instance that the requests of an execution came from.
pub(crate) struct StreamOrigin {
    pub queue: Arc<RequestQueue>,
    /// Number of the instance that executes the requests.
    pub instance: usize,
    /// For each row, the step whose sequence waits for the states that the request leaves.
    pub steps: Vec<Option<SlotTicket>>,
}

impl StreamAccounting {
    /// Observes the requests of a batch that are answered later. The execution of the batch begins now.
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
