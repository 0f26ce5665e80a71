//! How a request that was taken out of its batch is answered.

use std::sync::Arc;

use galatea_telemetry::ResponseRecord;
use galatea_types::{
    Clock, Error, InferResponse, Parameters, PreparedRequest, RequestContext, Responder, Result,
    Tensor, Timeline,
};

use crate::PendingRequest;

/// Notified of each request that was taken out of a batch: when its first response is about to leave, if it gets any, once
/// when its last one is, and once when that has left.
pub trait RequestObserver: Send + Sync {
    /// The first response is about to leave. It may be the last one too.
    fn responds_first(&self, context: &RequestContext) {
        let _ = context;
    }

    /// The backend reports what one of its responses took, the one of this number from 0.
    fn reported(&self, number: usize, record: &ResponseRecord) {
        let _ = (number, record);
    }

    /// The last response is about to leave.
    fn ended(&self, end: RequestEnd<'_>);

    /// The last response has left.
    fn left(&self) {}
}

/// A request that was taken out of a batch, at its end.
#[derive(Debug)]
pub struct RequestEnd<'a> {
    /// The client's id of the request.
    pub request_id: &'a str,
    /// Of the request; its timeline has no end yet.
    pub context: &'a mut RequestContext,
    /// Its items.
    pub batch_size: u32,
    /// How many responses with a body it got, the last one included.
    pub responses: u64,
    /// Its first error, if any response was one.
    pub failure: Option<&'a Error>,
}

/// The responder of a request that was taken out of its batch: any number of responses, from any thread, also
/// after `execute` has returned. It counts what it sends, and the end once. Dropped before the last response, it
/// ends the request with an internal error.
pub struct ResponseSender {
    pub(crate) model_name: Arc<str>,
    pub(crate) model_version: i64,
    pub(crate) request_id: String,
    pub(crate) batch_size: u32,
    pub(crate) context: RequestContext,
    pub(crate) responder: Option<Responder>,
    pub(crate) observer: Option<Arc<dyn RequestObserver>>,
    pub(crate) responses: u64,
    /// Responses that were reported.
    pub(crate) reported: usize,
    pub(crate) failure: Option<Error>,
    pub(crate) clock: Clock,
}

impl ResponseSender {
    /// One response that others follow.
    pub fn send(&mut self, result: Result<(Vec<Tensor>, Parameters)>) {
        let response = self.response(result);
        if let Some(responder) = &mut self.responder {
            responder.send(response);
        }
    }

    /// The last response, or the end without one.
    pub fn finish(mut self, last: Option<Result<(Vec<Tensor>, Parameters)>>) {
        self.end_with(last);
    }

    /// Who waits for the responses, and what has happened so far.
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// When what happened to this request.
    pub fn timeline(&self) -> &Timeline {
        &self.context.timeline
    }

    /// Marks the end of gathering this request's inputs and the start of its computation.
    pub fn mark_input_done(&mut self) {
        self.context.timeline.input_done = Some(self.clock.now());
    }

    /// Marks the end of this request's computation and the start of handing out its outputs.
    pub fn mark_output_started(&mut self) {
        self.context.timeline.output_start = Some(self.clock.now());
    }

    /// Reports what the next response took, or one that is left out, for the statistics of single responses. Before it is
    /// sent: a client that has it finds it counted. Few backends do: those that do in Triton.
    pub fn report(&mut self, record: &ResponseRecord) {
        if let Some(observer) = &self.observer {
            observer.reported(self.reported, record);
        }
        self.reported = self.reported.saturating_add(1);
    }

    /// The request as it was before it was taken, with the same caller: it has no last response yet.
    pub(crate) fn into_pending(mut self, request: PreparedRequest) -> Option<PendingRequest> {
        let responder = self.responder.take()?;
        let context = std::mem::take(&mut self.context);
        let pending = PendingRequest::new(request, context, responder);
        Some(PendingRequest { responses: self.responses, ..pending })
    }

    /// Whether the client has gone or has asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.context.cancellation.is_cancelled()
            || self.responder.as_ref().is_none_or(Responder::is_closed)
    }

    fn response(&mut self, result: Result<(Vec<Tensor>, Parameters)>) -> Result<InferResponse> {
        self.responses += 1;
        if self.responses == 1
            && let Some(observer) = &self.observer
        {
            observer.responds_first(&self.context);
        }
        match result {
            Ok((outputs, parameters)) => Ok(InferResponse {
                model_name: self.model_name.clone(),
                model_version: self.model_version,
                id: self.request_id.clone(),
                parameters,
                outputs,
            }),
            Err(error) => {
                self.failure.get_or_insert_with(|| error.clone());
                Err(error)
            }
        }
    }

    fn end_with(&mut self, last: Option<Result<(Vec<Tensor>, Parameters)>>) {
        let Some(responder) = self.responder.take() else { return };
        let last = last.map(|result| self.response(result));
        if let Some(observer) = &self.observer {
            observer.ended(RequestEnd {
                request_id: &self.request_id,
                context: &mut self.context,
                batch_size: self.batch_size,
                responses: self.responses,
                failure: self.failure.as_ref(),
            });
        }
        match last {
            Some(result) => responder.finish(result),
            None => responder.close(),
        }
        if let Some(observer) = &self.observer {
            observer.left();
        }
    }
}

impl std::fmt::Debug for ResponseSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResponseSender({}, {} responses)", self.model_name, self.responses)
    }
}

impl Drop for ResponseSender {
    fn drop(&mut self) {
        if self.responder.is_some() {
            let model = &self.model_name;
            let text = format!("model '{model}' gave up a request without a final response");
            self.end_with(Some(Err(Error::internal(text))));
        }
    }
}
