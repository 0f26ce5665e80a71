//! Counting requests whose responses come after `execute` has returned.

use std::sync::Arc;

use galatea_backend::{RequestEnd, RequestObserver};
use galatea_telemetry::ResponseRecord;
use galatea_types::RequestContext;

use super::{
    count_once::CountOnce,
    request_accounting::{Items, RequestAccounting},
};
use crate::{instance::OpenStream, request_queue::RequestQueue};

/// The requests of one execution that are answered after `execute` has returned.
///
/// The execution counts once for all its requests, as soon as `execute` returns or the first of them ends: a client
/// that has its last response finds it counted.
pub(crate) struct StreamAccounting {
    /// Where its requests came from; `None`: they warm the instance up.
    queue: Option<Arc<RequestQueue>>,
    accounting: Arc<RequestAccounting>,
    items: Items,
    once: CountOnce,
    /// The instance is needed until all of them have ended.
    _open: OpenStream,
}

impl StreamAccounting {
    /// `items`: of all requests of the execution.
    pub fn new(
        queue: Option<Arc<RequestQueue>>,
        accounting: Arc<RequestAccounting>,
        items: Items,
        open: OpenStream,
    ) -> Self {
        Self { queue, accounting, items, once: CountOnce::default(), _open: open }
    }

    pub fn once(&self) -> &CountOnce {
        &self.once
    }
}

impl RequestObserver for StreamAccounting {
    fn responds_first(&self, context: &RequestContext) {
        self.accounting.responds_first(context);
    }

    fn reported(&self, number: usize, record: &ResponseRecord) {
        self.accounting.response(number, record);
    }

    fn ended(&self, end: RequestEnd<'_>) {
        self.accounting.request_ended(end, &self.once, self.items);
    }

    fn left(&self) {
        if let Some(queue) = &self.queue {
            queue.finish(1);
        }
    }
}
