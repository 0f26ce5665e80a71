//! ModelStreamInfer: requests in, responses out, on one call.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_engine::ServedModel;
use galatea_frontend::{KeyedResponse, OnOverflow, ResponseKey, ResponseReceiver};
use galatea_proto::inference::{ModelInferRequest, ModelStreamInferResponse};
use galatea_types::{Error, Refused, Result};
use tokio::time::Sleep;
use tonic::{Status, Streaming, codegen::tokio_stream::Stream, metadata::MetadataMap};

use crate::{
    deadline::deadline_of,
    infer::{find_model, read},
    reply::{Open, Reply, refusal_reply},
    state::{SHUTTING_DOWN, ServerState},
};

/// The responses of one stream. Polling it reads requests ahead as far as they have come, hands them to the
/// engine, and yields the responses: those of ordinary models in the order of the requests, those of decoupled
/// ones as they come. Dropping it cancels all requests that are open.
///
/// It runs on the call's own task: no task per request, and no channel between reader and writer. When the
/// client stops reading responses, flow control stops the polling and with it the reading ahead; what decoupled
/// models send meanwhile waits in the receiver, up to its limit.
pub(crate) struct InferStream {
    state: Arc<ServerState>,
    requests: Streaming<ModelInferRequest>,
    has_more_requests: bool,
    /// An error in a model's response ends the stream with its status, as the client asked for in the metadata. Errors from
    /// before the model had the request never do.
    is_strict: bool,
    deadline: Option<Pin<Box<Sleep>>>,
    responses: ResponseReceiver,
    /// Requests answered in order, from number `first_ordered` on.
    ordered: VecDeque<Ordered>,
    first_ordered: u64,
    /// Requests of decoupled models whose final response has not come.
    decoupled: HashMap<u64, Open>,
    next_decoupled: u64,
    /// What is sent next.
    ready: VecDeque<Reply>,
    is_done: bool,
}

/// A request whose response has its place in the order.
enum Ordered {
    Running(Open),
    Answered(Reply),
}

type Item = Result<ModelStreamInferResponse, Status>;

impl InferStream {
    pub fn new(
        state: Arc<ServerState>,
        metadata: &MetadataMap,
        requests: Streaming<ModelInferRequest>,
    ) -> Self {
        let deadline = deadline_of(metadata.as_ref());
        let responses = ResponseReceiver::new(state.max_unread, OnOverflow::Discard, &state.memory);
        Self {
            state,
            requests,
            has_more_requests: true,
            is_strict: metadata.get("triton_grpc_error").is_some_and(|v| v == "true"),
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into()))),
            responses,
            ordered: VecDeque::new(),
            first_ordered: 0,
            decoupled: HashMap::new(),
            next_decoupled: 0,
            ready: VecDeque::new(),
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

    /// A request whose model is not found has its place in the order, as one of an ordinary model.
    fn start(&mut self, message: ModelInferRequest) {
        match self.find_model(&message) {
            Ok(model) if model.config().is_decoupled() => self.start_decoupled(model, message),
            Ok(model) => self.start_ordered(model, message),
            Err(error) => self.answer_next_ordered(refusal_reply(&error, message.id)),
        }
    }

    /// A server that shuts down takes no more requests, not even on a stream that is open.
    fn find_model(&self, message: &ModelInferRequest) -> Result<Arc<ServedModel>> {
        if self.state.in_flight.is_closed() {
            return Err(Error::unavailable(SHUTTING_DOWN));
        }
        find_model(&self.state.engine, message)
    }

    fn start_ordered(&mut self, model: Arc<ServedModel>, message: ModelInferRequest) {
        let key = ResponseKey::Ordered(self.first_ordered + self.ordered.len() as u64);
        match self.submit(key, model, message) {
            Ok(open) => self.ordered.push_back(Ordered::Running(open)),
            Err(refusal) => self.answer_next_ordered(*refusal),
        }
    }

    fn start_decoupled(&mut self, model: Arc<ServedModel>, message: ModelInferRequest) {
        let number = self.next_decoupled;
        self.next_decoupled += 1;
        match self.submit(ResponseKey::Unordered(number), model, message) {
            Ok(open) => drop(self.decoupled.insert(number, open)),
            Err(refusal) => self.ready.push_back(*refusal),
        }
    }

    /// Reads a request and hands it to its model; a refusal is the reply.
    fn submit(
        &self,
        key: ResponseKey,
        model: Arc<ServedModel>,
        message: ModelInferRequest,
    ) -> Result<Open, Box<Reply>> {
        let id = message.id.clone();
        let version = message.model_version.clone();
        let read = read(model, message, self.state.max_response_size);
        let (request, context, pending) =
            read.map_err(|e| Box::new(refusal_reply(&e, id.clone())))?;
        let cancellation = context.cancellation.clone();
        let responder = self.responses.responder(key, cancellation);
        let accepted = pending.model().infer(request, context, responder);
        accepted.map_err(|refused| {
            Box::new(refusal_reply(&Refused::into_error(refused), id.clone()))
        })?;
        Ok(Open { id, version, pending, is_strict: self.is_strict })
    }

    fn answer_next_ordered(&mut self, reply: Reply) {
        self.ordered.push_back(Ordered::Answered(reply));
        self.release_ordered();
    }

    /// Sorts the responses that have come, until there is something to send or nothing has come.
    fn collect(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        while self.ready.is_empty() {
            match self.responses.poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(received)) => self.sort(received),
                Poll::Ready(Err(_)) => return Err(overflow()),
            }
        }
        Ok(())
    }

    fn sort(&mut self, received: KeyedResponse) {
        match received.key {
            ResponseKey::Ordered(number) => self.sort_ordered(number, received),
            ResponseKey::Unordered(number) => self.sort_decoupled(number, received),
        }
    }

    /// The first response counts; what a model may send after it has nowhere to go.
    fn sort_ordered(&mut self, number: u64, received: KeyedResponse) {
        let index = number.checked_sub(self.first_ordered).and_then(|n| usize::try_from(n).ok());
        let Some(entry) = index.and_then(|n| self.ordered.get_mut(n)) else { return };
        if let Ordered::Running(open) = entry {
            *entry = Ordered::Answered(open.only_reply(received));
            self.release_ordered();
        }
    }

    fn sort_decoupled(&mut self, number: u64, received: KeyedResponse) {
        let is_final = received.response.is_final;
        let weight = received.weight();
        let Some(open) = self.decoupled.get(&number) else { return };
        match open.reply(received) {
            Some(reply) => self.ready.push_back(reply),
            None => self.responses.release(weight),
        }
        if is_final {
            self.decoupled.remove(&number);
        }
    }

    /// Responses leave the order as soon as none is before them.
    fn release_ordered(&mut self) {
        while let Some(Ordered::Answered(_)) = self.ordered.front() {
            self.first_ordered += 1;
            self.responses.await_ordered(self.first_ordered);
            if let Some(Ordered::Answered(reply)) = self.ordered.pop_front() {
                self.ready.push_back(reply);
            }
        }
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.deadline.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Some(Err(Status::deadline_exceeded("Deadline Exceeded"))));
        }
        if let Err(status) = self.read_ahead(cx).and_then(|()| self.collect(cx)) {
            return Poll::Ready(Some(Err(status)));
        }
        match self.ready.pop_front() {
            Some(reply) => {
                self.responses.release(reply.weight);
                Poll::Ready(Some(reply.item))
            }
            None if self.is_idle() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn is_idle(&self) -> bool {
        !self.has_more_requests && self.ordered.is_empty() && self.decoupled.is_empty()
    }

    /// Nothing more is sent or read; what is still open is cancelled.
    fn finish(&mut self) {
        self.is_done = true;
        self.has_more_requests = false;
        self.ordered.clear();
        self.decoupled.clear();
        self.ready.clear();
        self.responses.close();
    }
}

fn overflow() -> Status {
    Status::resource_exhausted(
        "the client does not read its responses: too many of them wait to be sent",
    )
}

impl Stream for InferStream {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let polled = self.poll_reply(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.finish();
        }
        polled
    }
}
