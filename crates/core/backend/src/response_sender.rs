//! Answers requests that were taken out of their batch.

use std::{sync::Arc, time::Instant};

use galatea_telemetry::ResponseRecord;
use galatea_types::{
    Clock, Error, InferRequest, InferResponse, Parameters, PreparedRequest, RequestContext,
    Responder, Result, Tensor, Timeline,
};

use crate::{PendingRequest, SequenceStates};

/// A request that left its batch. It is answered on its own, from any thread, also after `execute` has returned.
#[derive(Debug)]
pub struct TakenRequest {
    /// The request. Dropping it releases its inputs, answered or not.
    pub request: PreparedRequest,
    /// Sends its responses; holds its timeline and the states of its sequence.
    pub responder: ResponseSender,
}

/// The data that the requests of a batch share and keep when they leave it.
#[derive(Clone)]
pub(crate) struct Execution {
    pub model_name: Arc<str>,
    pub model_version: i64,
    /// The observer that is notified of the ends of taken requests.
    pub observer: Option<Arc<dyn RequestObserver>>,
    pub clock: Clock,
}

/// The place of a request in its batch.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub number: usize,
    /// True if no other request was executed with it.
    pub is_alone: bool,
}

impl TakenRequest {
    /// Creates the request. `times` are those of its execution.
    pub(crate) fn new(
        pending: PendingRequest,
        row: Row,
        execution: &Execution,
        times: &Timeline,
    ) -> Self {
        let PendingRequest { request, mut context, responder, states, responses, is_filler } =
            pending;
        let mut execution = execution.clone();
        if is_filler {
            // Fillers of a batch are not counted.
            execution.observer = None;
        }
        // The start of its outputs is its own from now on.
        context.timeline.complete_from(&Timeline { output_start: None, ..*times });
        let of_sequence = || {
            Box::new(InferRequest {
                outputs: request.outputs.clone(),
                correlation_id: request.correlation_id.clone(),
                ..InferRequest::new(request.model_name.clone())
            })
        };
        let responder = ResponseSender {
            execution,
            row,
            request_id: request.id.clone(),
            batch_size: request.batch_size(),
            of_sequence: (!states.is_empty()).then(of_sequence),
            states,
            context,
            responder: Some(responder),
            responses,
            reported: 0,
            failure: None,
        };
        Self { request, responder }
    }

    /// Replaces a state of its sequence, like an output with that name in a response.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub fn set_state(&mut self, tensor: Tensor) -> Result<()> {
        self.responder.states.set(tensor, &self.request)
    }
}

/// Observes each request that was taken out of a batch: before its first response, if it gets any, before its last one, and
/// after that.
pub trait RequestObserver: Send + Sync {
    /// Called before the first response is sent, which may also be the last one.
    fn responds_first(&self, context: &RequestContext) {
        let _ = context;
    }

    /// Called when the backend reports the times of a response. `number` counts from 0.
    fn reported(&self, number: usize, record: &ResponseRecord) {
        let _ = (number, record);
    }

    /// Takes the states that a request leaves for the next one of its sequence, if there are any. `row` is its
    /// index in the batch. Its last response is sent afterwards.
    fn take_states(&self, row: usize, states: SequenceStates) {
        let _ = (row, states);
    }

    /// Called before the last response is sent.
    fn ended(&self, end: RequestEnd<'_>);

    /// Called after the last response was sent.
    fn left(&self) {}
}

/// A request that was taken out of a batch, at its end.
#[derive(Debug)]
pub struct RequestEnd<'a> {
    /// The client's id of the request.
    pub request_id: &'a str,
    /// The context of the request; its timeline has no end yet.
    pub context: &'a mut RequestContext,
    /// The number of its items.
    pub batch_size: u32,
    /// The number of its responses with a body, including the last one.
    pub responses: u64,
    /// Its first error, if any response was one.
    pub failure: Option<&'a Error>,
}

/// Sends any number of responses to a request that was taken out of its batch, from any thread, also after `execute` has
/// returned. It counts each response, and the end once. If it is dropped before the last response, the request ends with an
/// internal error.
///
/// Outputs that are states of a sequence are kept for its next request, which waits for the end of this one.
pub struct ResponseSender {
    execution: Execution,
    row: Row,
    request_id: String,
    batch_size: u32,
    context: RequestContext,
    responder: Option<Responder>,
    states: SequenceStates,
    /// The wanted outputs and the sequence, if there are states.
    of_sequence: Option<Box<InferRequest>>,
    responses: u64,
    /// The number of responses that were reported.
    reported: usize,
    failure: Option<Error>,
}

impl ResponseSender {
    /// Sends a response that others follow.
    pub fn send(&mut self, result: Result<(Vec<Tensor>, Parameters)>) {
        let response = self.response(result);
        if let Some(responder) = &mut self.responder {
            responder.send(response);
        }
    }

    /// Sends the last response, or the end without one.
    pub fn finish(mut self, last: Option<Result<(Vec<Tensor>, Parameters)>>) {
        self.end_with(last);
    }

    /// Returns the client, the deadline and the times so far.
    pub fn context(&self) -> &RequestContext {
        &self.context
    }

    /// Returns the times of this request.
    pub fn timeline(&self) -> &Timeline {
        &self.context.timeline
    }

    /// Marks the end of gathering this request's inputs and the start of its computation.
    pub fn mark_input_done(&mut self) {
        self.context.timeline.input_done = Some(self.execution.clock.now());
    }

    /// Marks the end of this request's computation and the start of returning its outputs.
    pub fn mark_output_started(&mut self) {
        self.context.timeline.output_start = Some(self.execution.clock.now());
    }

    /// Sets the instants of this request that the model has reported, in place of marks.
    pub fn set_compute_times(&mut self, input_done: Instant, output_start: Instant) {
        self.context.timeline.input_done = Some(input_done);
        self.context.timeline.output_start = Some(output_start);
    }

    /// Replaces a state of its sequence like [`TakenRequest::set_state`], after the request itself was dropped.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub fn set_state(&mut self, tensor: Tensor) -> Result<()> {
        match &self.of_sequence {
            Some(request) => self.states.set(tensor, request),
            None => {
                let model = self.execution.model_name.clone();
                self.states.set(tensor, &InferRequest::new(model))
            }
        }
    }

    /// Reports the times of the next response, or of one that is left out, for statistics of single responses. Must be called
    /// before it is sent, so that a client that has it finds it counted. Only backends that do so in Triton report.
    pub fn report(&mut self, record: &ResponseRecord) {
        if let Some(observer) = &self.execution.observer {
            observer.reported(self.reported, record);
        }
        self.reported = self.reported.saturating_add(1);
    }

    /// Returns the request as it was before it was taken, with the same caller. Returns `None` after the last response.
    pub(crate) fn into_pending(mut self, request: PreparedRequest) -> Option<PendingRequest> {
        let responder = self.responder.take()?;
        let context = std::mem::take(&mut self.context);
        let pending = PendingRequest::new(request, context, responder);
        let states = std::mem::take(&mut self.states);
        Some(PendingRequest { responses: self.responses, states, ..pending })
    }

    /// Returns true if the client has gone or has asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.context.cancellation.is_cancelled()
            || self.responder.as_ref().is_none_or(Responder::is_closed)
    }

    fn response(&mut self, result: Result<(Vec<Tensor>, Parameters)>) -> Result<InferResponse> {
        self.responses += 1;
        if self.responses == 1
            && let Some(observer) = &self.execution.observer
        {
            observer.responds_first(&self.context);
        }
        let result = match &self.of_sequence {
            Some(request) => self.states.keep(result, request, !self.row.is_alone),
            None => result,
        };
        match result {
            Ok((outputs, parameters)) => Ok(InferResponse {
                model_name: self.execution.model_name.clone(),
                model_version: self.execution.model_version,
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
        if let Some(observer) = &self.execution.observer {
            if !self.states.is_empty() {
                observer.take_states(self.row.number, std::mem::take(&mut self.states));
            }
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
        if let Some(observer) = &self.execution.observer {
            observer.left();
        }
    }
}

impl std::fmt::Debug for ResponseSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResponseSender({}, {} responses)", self.execution.model_name, self.responses)
    }
}

impl Drop for ResponseSender {
    fn drop(&mut self) {
        if self.responder.is_some() {
            let model = &self.execution.model_name;
            let text = format!("model '{model}' gave up a request without a final response");
            self.end_with(Some(Err(Error::internal(text))));
        }
    }
}
