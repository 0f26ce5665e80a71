//! ModelStreamInfer: requests in, answers out, on one call (G-55 to G-61).

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use galatea_engine::Engine;
use galatea_proto::inference::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use galatea_protocol::grpc::parameter_message;
use galatea_types::{Error, ParameterValue};
use tonic::{Status, Streaming, codegen::tokio_stream::Stream, metadata::MetadataMap};

use crate::{
    infer::{Caller, Pending, answer_of, submit},
    status::status_of,
};

/// The answers of one stream. Polling it reads requests ahead as far as they have come, hands them to the
/// engine, and yields the answers in the order of the requests. Dropping it cancels all that are open.
///
/// It runs on the call's own task: no task per request, and no channel between reader and writer. When the
/// client stops reading answers, flow control stops the polling and with it the reading ahead.
pub(crate) struct InferStream {
    engine: Arc<Engine>,
    requests: Streaming<ModelInferRequest>,
    has_more_requests: bool,
    open: VecDeque<Open>,
    max_message_size: usize,
    /// An error in a model's answer ends the stream with its status (G-56).
    is_strict: bool,
    is_done: bool,
}

/// A request without its answer sent.
struct Open {
    id: String,
    state: State,
}

enum State {
    /// Refused before the engine had it.
    Refused(Error),
    Running(Pending),
}

type Item = Result<ModelStreamInferResponse, Status>;

impl InferStream {
    pub fn new(
        engine: Arc<Engine>,
        metadata: &MetadataMap,
        requests: Streaming<ModelInferRequest>,
        max_message_size: usize,
    ) -> Self {
        Self {
            engine,
            requests,
            has_more_requests: true,
            open: VecDeque::new(),
            max_message_size,
            is_strict: metadata.get("triton_grpc_error").is_some_and(|v| v == "true"),
            is_done: false,
        }
    }

    /// Takes every request that is there. Fails when the stream itself is broken.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        while self.has_more_requests {
            match Pin::new(&mut self.requests).poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => self.has_more_requests = false,
                Poll::Ready(Some(message)) => self.start(message?),
            }
        }
        Ok(())
    }

    fn start(&mut self, message: ModelInferRequest) {
        let id = message.id.clone();
        let caller = Caller::Stream { is_strict: self.is_strict };
        let state = match submit(&self.engine, message, self.max_message_size, caller) {
            Ok(pending) => State::Running(pending),
            Err(error) => State::Refused(error),
        };
        self.open.push_back(Open { id, state });
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let Some(first) = self.open.front_mut() else {
            return if self.has_more_requests { Poll::Pending } else { Poll::Ready(None) };
        };
        let item = match ready!(first.poll(cx)) {
            Ok(response) => Ok(reply(response)),
            Err(Failure { error, is_model_error }) if self.is_strict && is_model_error => {
                Err(status_of(&error))
            }
            Err(Failure { error, .. }) => Ok(error_reply(&error, std::mem::take(&mut first.id))),
        };
        self.open.pop_front();
        Poll::Ready(Some(item))
    }

    /// Nothing more is sent or read; what is still open is cancelled.
    fn finish(&mut self) {
        self.is_done = true;
        self.has_more_requests = false;
        self.open.clear();
    }
}

struct Failure {
    error: Error,
    /// It came as the answer, not from reading the request.
    is_model_error: bool,
}

impl Open {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ModelInferResponse, Failure>> {
        match &mut self.state {
            State::Refused(error) => {
                Poll::Ready(Err(Failure { error: error.clone(), is_model_error: false }))
            }
            State::Running(pending) => {
                let answer = answer_of(ready!(Pin::new(&mut pending.answer).poll(cx)));
                let response = pending.render(answer);
                Poll::Ready(response.map_err(|error| Failure { error, is_model_error: true }))
            }
        }
    }
}

/// G-57: the marker is there for every model, so that a client need not know which are decoupled.
fn reply(mut response: ModelInferResponse) -> ModelStreamInferResponse {
    let marker = parameter_message(ParameterValue::Bool(true));
    response.parameters.insert("triton_final_response".to_owned(), marker);
    ModelStreamInferResponse { infer_response: Some(response), ..Default::default() }
}

/// G-55: the error, and the id by which the client knows the request; nothing else.
fn error_reply(error: &Error, id: String) -> ModelStreamInferResponse {
    ModelStreamInferResponse {
        error_message: error.message().to_owned(),
        infer_response: Some(ModelInferResponse { id, ..Default::default() }),
    }
}

impl Stream for InferStream {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let this = &mut *self;
        if this.is_done {
            return Poll::Ready(None);
        }
        let item = match this.read_ahead(cx) {
            Ok(()) => ready!(this.poll_answer(cx)),
            Err(status) => Some(Err(status)),
        };
        if !matches!(item, Some(Ok(_))) {
            this.finish();
        }
        Poll::Ready(item)
    }
}
