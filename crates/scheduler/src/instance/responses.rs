//! How the requests of a queue are answered: counted first, so that a client that has its response finds it counted,
//! and in the order of arrival where the configuration asks for that.

use std::{sync::Arc, time::Instant};

use galatea_backend::{Batch, Outcome, PendingRequest};
use galatea_telemetry::{FailureReason, RefusalReason};
use galatea_types::Error;

use crate::{
    accounting::{RequestAccounting, StreamAccounting},
    completion::CompletionQueue,
    queue::DropReason,
    queued_request::QueuedRequest,
    request_failure::RequestFailure,
};

/// Answers the requests of one queue.
#[derive(Clone)]
pub(crate) struct Responses {
    model_name: Arc<str>,
    accounting: Arc<RequestAccounting>,
    /// Present when responses leave in the order of arrival.
    order: Option<Arc<CompletionQueue>>,
}

impl Responses {
    pub fn new(
        model_name: Arc<str>,
        accounting: Arc<RequestAccounting>,
        order: Option<Arc<CompletionQueue>>,
    ) -> Self {
        Self { model_name, accounting, order }
    }

    /// The same for requests that come from no queue, and whose failures are told elsewhere.
    pub fn unlogged(&self) -> Self {
        let accounting = Arc::new(self.accounting.unlogged());
        Self { model_name: self.model_name.clone(), accounting, order: None }
    }

    pub fn accounting(&self) -> &Arc<RequestAccounting> {
        &self.accounting
    }

    /// Takes a request that has left the queue: what is answered from now on keeps the order, if there is one.
    pub fn take(&self, request: QueuedRequest) -> PendingRequest {
        self.accounting.dequeued();
        let QueuedRequest { mut pending, arrival } = request;
        if let Some(order) = &self.order {
            pending.responder = order.clone().admit(arrival, pending.responder);
        }
        pending
    }

    /// Counts and answers an executed batch. Returns when its execution ended, and how many of its requests are answered
    /// later.
    pub fn answer_batch(
        &self,
        mut batch: Batch,
        streams: Option<&StreamAccounting>,
    ) -> (Instant, usize) {
        let once = streams.map(StreamAccounting::once);
        let end = self.accounting.executed(&mut batch, once, || self.unanswered());
        let taken = batch.taken().requests;
        for (pending, outcome) in batch.into_outcomes() {
            match outcome {
                Outcome::Answered(result) => pending.responder.finish(result),
                Outcome::Unanswered => {
                    pending.responder.finish(Err(self.unanswered()));
                }
            }
        }
        (end, taken)
    }

    /// Answers requests that left the queue without being executed.
    pub fn answer_dropped(&self, dropped: Vec<(QueuedRequest, DropReason)>) {
        for (request, reason) in dropped {
            match reason {
                DropReason::Expired => {
                    self.accounting.refused(RefusalReason::QueueTimeout);
                    self.fail(request, FailureReason::Rejected, RequestFailure::Expired.into());
                }
                DropReason::Abandoned => self.answer_abandoned([request]),
            }
        }
    }

    /// Answers requests that nobody waits for, and frees what they hold.
    pub fn answer_abandoned(&self, requests: impl IntoIterator<Item = QueuedRequest>) {
        for request in requests {
            self.fail(request, FailureReason::Canceled, RequestFailure::Abandoned.into());
        }
    }

    /// Answers queued requests that nothing can execute any more.
    pub fn answer_outage(&self, requests: Vec<QueuedRequest>, reason: &Error) {
        for request in requests {
            self.accounting.refused(RefusalReason::NoInstance);
            let error = RequestFailure::NoWorkingInstance {
                prefix: String::new(),
                model: self.model_name.to_string(),
                reason: reason.clone(),
            };
            self.fail(request, FailureReason::Other, error.into());
        }
    }

    /// The error of a request that the backend did not answer.
    pub fn unanswered(&self) -> Error {
        RequestFailure::Unanswered { model: self.model_name.to_string() }.into()
    }

    fn fail(&self, request: QueuedRequest, reason: FailureReason, error: Error) {
        let PendingRequest { request, mut context, responder, .. } = self.take(request);
        self.accounting.failed(&request.id, &mut context, reason, &error);
        responder.finish(Err(error));
    }
}
