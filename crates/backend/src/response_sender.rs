use std::{sync::Arc, time::Instant};

use galatea_types::{
    Cancellation, Code, Error, InferResponse, Parameters, Responder, Result, StepTimes, Tensor,
};

/// Told about each detached request: once when its last response is about to leave, once when it has left.
pub trait StreamObserver: Send + Sync {
    fn ended(&self, end: &StreamEnd);

    fn left(&self) {}
}

/// One detached request, at its end.
#[derive(Clone, Debug)]
pub struct StreamEnd {
    pub received_at: Instant,
    pub queued_at: Instant,
    /// When the instance took its batch.
    pub started_at: Instant,
    pub input_done_at: Option<Instant>,
    pub batch_size: u32,
    /// As in the request.
    pub step_times: Option<Arc<StepTimes>>,
    /// How many responses with a body it got, the last one included.
    pub responses: u64,
    /// The class of its first error, if any response was one.
    pub failure: Option<Code>,
}

/// The way back of one request of a decoupled model: any number of responses, from any thread, also after
/// `execute` has returned. Dropped before the last one, it ends the stream with an internal error.
pub struct ResponseSender {
    pub(crate) model_name: Arc<str>,
    pub(crate) model_version: i64,
    pub(crate) request_id: String,
    pub(crate) cancellation: Cancellation,
    pub(crate) responder: Option<Responder>,
    pub(crate) observer: Option<Arc<dyn StreamObserver>>,
    pub(crate) end: StreamEnd,
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

    /// Whether the client has gone or has asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled() || self.responder.as_ref().is_none_or(Responder::is_closed)
    }

    fn response(&mut self, result: Result<(Vec<Tensor>, Parameters)>) -> Result<InferResponse> {
        self.end.responses += 1;
        match result {
            Ok((outputs, parameters)) => Ok(InferResponse {
                model_name: self.model_name.clone(),
                model_version: self.model_version,
                id: self.request_id.clone(),
                parameters,
                outputs,
            }),
            Err(error) => {
                self.end.failure.get_or_insert(error.code());
                Err(error)
            }
        }
    }

    fn end_with(&mut self, last: Option<Result<(Vec<Tensor>, Parameters)>>) {
        let Some(responder) = self.responder.take() else { return };
        let last = last.map(|result| self.response(result));
        if let Some(observer) = &self.observer {
            observer.ended(&self.end);
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

impl Drop for ResponseSender {
    fn drop(&mut self) {
        if self.responder.is_some() {
            let model = &self.model_name;
            let text = format!("model '{model}' gave up a request without a final response");
            self.end_with(Some(Err(Error::internal(text))));
        }
    }
}
