//! How a request that was taken out of its batch is answered.

use std::sync::Arc;

use galatea_telemetry::ResponseRecord;
use galatea_types::{
    Clock, Error, InferRequest, InferResponse, Parameters, PreparedRequest, RequestContext,
    Responder, Result, Tensor, Timeline,
};

use crate::{PendingRequest, SequenceStates};

/// A request that left its batch. It has all that it needs, and is answered on its own, from any thread, also after `execute`
/// has returned.
#[derive(Debug)]
pub struct TakenRequest {
    /// What is asked for. Dropping it releases its inputs, whether it was answered or not.
    pub request: PreparedRequest,
    /// Where its responses go, with its timeline and the states of its sequence.
    pub responder: ResponseSender,
}

/// What the requests of a batch have in common, and take along when they leave it.
#[derive(Clone)]
pub(crate) struct Execution {
    pub model_name: Arc<str>,
    pub model_version: i64,
    /// Who is notified of the ends of taken requests.
    pub observer: Option<Arc<dyn RequestObserver>>,
    pub clock: Clock,
}

/// The place of a request in its batch.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub number: usize,
    /// No other request was executed with it.
    pub is_alone: bool,
}

impl TakenRequest {
    /// `times`: those of its execution.
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
            // Nobody counts what fills up a batch.
            execution.observer = None;
        }
        // When its outputs begin is its own affair from now on.
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

    /// Replaces a state of its sequence, as an output of that name does in a response.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub fn set_state(&mut self, tensor: Tensor) -> Result<()> {
        self.responder.states.set(tensor, &self.request)
    }
}

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

    /// Takes the states of the sequence of the request at this index of its batch, where there are any, as it leaves them to
    /// the next one. Its last response is about to leave.
    fn take_states(&self, row: usize, states: SequenceStates) {
        let _ = (row, states);
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
    /// The outputs that are asked for, and the sequence, where there are states.
    of_sequence: Option<Box<InferRequest>>,
    responses: u64,
    /// Responses that were reported.
    reported: usize,
    failure: Option<Error>,
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
        self.context.timeline.input_done = Some(self.execution.clock.now());
    }

    /// Marks the end of this request's computation and the start of handing out its outputs.
    pub fn mark_output_started(&mut self) {
        self.context.timeline.output_start = Some(self.execution.clock.now());
    }

    /// Reports what the next response took, or one that is left out, for the statistics of single responses. Before it is
    /// sent: a client that has it finds it counted. Few backends do: those that do in Triton.
    pub fn report(&mut self, record: &ResponseRecord) {
        if let Some(observer) = &self.execution.observer {
            observer.reported(self.reported, record);
        }
        self.reported = self.reported.saturating_add(1);
    }

    /// The request as it was before it was taken, with the same caller: it has no last response yet.
    pub(crate) fn into_pending(mut self, request: PreparedRequest) -> Option<PendingRequest> {
        let responder = self.responder.take()?;
        let context = std::mem::take(&mut self.context);
        let pending = PendingRequest::new(request, context, responder);
        let states = std::mem::take(&mut self.states);
        Some(PendingRequest { responses: self.responses, states, ..pending })
    }

    /// Whether the client has gone or has asked to stop.
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
