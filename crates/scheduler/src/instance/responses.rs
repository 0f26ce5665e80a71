//! How the requests of a queue are answered: counted first, so that a client that has its response finds it counted,
//! and in the order of arrival where the configuration asks for that.

use std::sync::Arc;

use galatea_backend::{Batch, Job, Outcome};
use galatea_telemetry::FailureReason;
use galatea_types::Error;

use crate::{
    accounting::{RequestAccounting, RequestFacts, StreamAccounting},
    completion::CompletionQueue,
    failures,
    queue::DropReason,
    queued_request::QueuedRequest,
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

    pub fn accounting(&self) -> &Arc<RequestAccounting> {
        &self.accounting
    }

    /// Takes a request that has left the queue: what is answered from now on keeps the order, if there is one.
    pub fn take(&self, request: QueuedRequest) -> Job {
        self.accounting.dequeued();
        let QueuedRequest { mut job, arrival } = request;
        if let Some(order) = &self.order {
            job.responder = order.clone().admit(arrival, job.responder);
        }
        job
    }

    /// Counts and answers an executed batch. Returns how many of its requests are answered later.
    pub fn answer_batch(&self, batch: Batch, streams: Option<&StreamAccounting>) -> usize {
        self.accounting.executed(&batch, streams.map(StreamAccounting::once), || self.unanswered());
        let mut detached = 0;
        for (job, outcome) in batch.into_outcomes() {
            match outcome {
                Outcome::Answered(result) => job.responder.finish(result),
                Outcome::Unanswered | Outcome::NotBegun => {
                    job.responder.finish(Err(self.unanswered()));
                }
                Outcome::Detached => detached += 1,
            }
        }
        detached
    }

    /// Answers requests that left the queue without being executed.
    pub fn answer_dropped(&self, dropped: Vec<(QueuedRequest, DropReason)>) {
        for (request, reason) in dropped {
            let (reason, error) = match reason {
                DropReason::Expired => (FailureReason::Rejected, failures::expired()),
                DropReason::Abandoned => (FailureReason::Canceled, failures::cancelled()),
            };
            self.fail(request, reason, error);
        }
    }

    /// Answers queued requests that nothing can execute any more.
    pub fn answer_outage(&self, requests: Vec<QueuedRequest>, reason: &Error) {
        for request in requests {
            let error = failures::no_working_instance(&self.model_name, reason);
            self.fail(request, FailureReason::Other, error);
        }
    }

    /// The error of a request that the backend did not answer.
    pub fn unanswered(&self) -> Error {
        failures::unanswered(&self.model_name)
    }

    fn fail(&self, request: QueuedRequest, reason: FailureReason, error: Error) {
        let job = self.take(request);
        self.accounting.failed(RequestFacts::of(&job.request), reason, &error);
        job.responder.finish(Err(error));
    }
}
