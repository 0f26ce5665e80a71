//! Answers the requests of a queue. Requests are counted first, so that a client that has its response finds it counted.
//! Responses are sent in the order of arrival if the configuration asks for it.

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
    request_queue::NotExecuted,
    sequence::SequenceDrop,
};

/// Answers the requests of one queue.
#[derive(Clone)]
pub(crate) struct Responses {
    pub model_name: Arc<str>,
    pub accounting: Arc<RequestAccounting>,
    /// Present if responses are sent in the order of arrival.
    pub order: Option<Arc<CompletionQueue>>,
}

impl Responses {
    /// Returns responses for requests that come from no queue and whose failures are reported elsewhere.
    pub fn unlogged(&self) -> Self {
        let accounting = Arc::new(self.accounting.unlogged());
        Self { model_name: self.model_name.clone(), accounting, order: None }
    }

    /// Takes a request that has left the queue. Its responses keep the order of arrival if one is configured.
    pub fn take(&self, request: QueuedRequest) -> PendingRequest {
        self.accounting.statistics.pending_down();
        let QueuedRequest { mut pending, arrival } = request;
        if let Some(order) = &self.order {
            pending.responder = order.clone().admit(arrival, pending.responder);
        }
        pending
    }

    /// Counts and answers an executed batch. Returns the time its execution ended and the number of requests answered later.
    pub fn answer_batch(
        &self,
        mut batch: Batch,
        streams: Option<&StreamAccounting>,
    ) -> (Instant, usize) {
        let once = streams.map(|streams| &streams.once);
        let end = self.accounting.executed(&mut batch, once, || self.unanswered());
        let taken = batch.taken().requests;
        for (pending, outcome) in batch.into_outcomes() {
            match outcome {
                Outcome::Answered(result) => pending.responder.finish(result),
                Outcome::Unanswered => pending.responder.finish(Err(self.unanswered())),
                Outcome::ExecutedAgain => {
                    pending.responder.finish(Err(RequestFailure::NotIterative.into()));
                }
            }
        }
        (end, taken)
    }

    /// Answers requests that left the queue without being executed.
    pub fn answer_dropped(&self, dropped: Vec<(QueuedRequest, NotExecuted)>) {
        for (request, reason) in dropped {
            match reason {
                NotExecuted::Request(DropReason::Expired) => {
                    self.answer_expired(request, RequestFailure::Expired);
                }
                NotExecuted::OfSequence(SequenceDrop::Expired) => {
                    self.answer_expired(request, RequestFailure::SequenceExpired);
                }
                NotExecuted::Request(DropReason::Abandoned)
                | NotExecuted::OfSequence(SequenceDrop::Abandoned) => {
                    self.fail(request, FailureReason::Canceled, RequestFailure::Abandoned.into());
                }
                NotExecuted::OfSequence(SequenceDrop::Cancelled) => {
                    let failure = RequestFailure::SequenceCancelled;
                    self.fail(request, FailureReason::Canceled, failure.into());
                }
                NotExecuted::OfSequence(SequenceDrop::Lost(reason)) => {
                    let id = request.pending.request.correlation_id.clone();
                    let model = self.model_name.to_string();
                    let failure = RequestFailure::SequenceLost { id, model, reason };
                    self.fail(request, FailureReason::Other, failure.into());
                }
            }
        }
    }

    /// Answers a request that waited too long.
    fn answer_expired(&self, request: QueuedRequest, failure: RequestFailure) {
        self.accounting.statistics.record_refusal(RefusalReason::QueueTimeout);
        self.fail(request, FailureReason::Rejected, failure.into());
    }

    /// Answers queued requests that no instance can execute any more.
    pub fn answer_outage(&self, requests: Vec<QueuedRequest>, reason: &Error) {
        for request in requests {
            self.accounting.statistics.record_refusal(RefusalReason::NoInstance);
            let error = RequestFailure::NoWorkingInstance {
                prefix: String::new(),
                model: self.model_name.to_string(),
                reason: reason.clone(),
            };
            self.fail(request, FailureReason::Other, error.into());
        }
    }

    /// Returns the error for a request that the backend did not answer.
    pub fn unanswered(&self) -> Error {
        RequestFailure::Unanswered { model: self.model_name.to_string() }.into()
    }

    /// Answers an unexecuted request at once, without waiting for earlier requests.
    fn fail(&self, request: QueuedRequest, reason: FailureReason, error: Error) {
        self.accounting.statistics.pending_down();
        let QueuedRequest { pending, arrival } = request;
        let PendingRequest { request, mut context, responder, .. } = pending;
        context.forgo_place();
        self.accounting.failed(&request.id, &mut context, reason, &error);
        responder.finish(Err(error));
        if let Some(order) = &self.order {
            order.clone().pass_over(arrival);
        }
    }
}
