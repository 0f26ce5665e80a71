//! ModelStreamInfer: requests in, responses out, on one call.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use galatea_frontend::{
    KeyedResponse, OnOverflow, RequestGuard, ResponseKey, ResponseReceiver, Subject,
};
use galatea_protocol::grpc::RequestMessage;
use galatea_types::{Error, MemoryReservation, Result};
use http::HeaderMap;
use tonic::Status;

use crate::{
    call_record::CallRecord,
    infer::{Decoded, InferHead, MessageForm, decode_for, find_model, is_heavy, is_heavy_to_read},
    message::{Message, over_budget},
    messages::Messages,
    reply::{OpenRequest, OutgoingReply, REPLY_WEIGHT, Reply, refusal_reply},
    sender::Sender,
    state::{SHUTTING_DOWN, ServerState, is_short_of_memory},
    status::status_of,
    timer::{self, Timer},
};

/// The most requests of a stream without a response. Further ones are not read, so that flow control stops the client.
/// A response that waits for the client to read it counts like a request.
const MAX_OUTSTANDING: usize = 1024;
/// The most bytes of requests and waiting responses.
const MAX_OUTSTANDING_BYTES: usize = 64 << 20;
/// The approximate memory of a request of a stream besides its message.
const REQUEST_WEIGHT: usize = 2 << 10;

/// The responses of one stream. Polling it reads requests ahead, up to the bounds above, submits them and yields the
/// responses. Those of ordinary models keep the order of the requests; those of decoupled models come in any order.
/// Dropping it cancels all open requests.
///
/// It runs on the call's own task, without a task per request or a channel between reader and writer. When the client
/// stops reading, flow control stops the polling and thus the reading ahead. Responses of decoupled models then wait in
/// the receiver, up to its limit.
pub(crate) struct InferStream {
    state: Arc<ServerState>,
    messages: Messages,
    sender: Sender,
    form: MessageForm,
    has_more_requests: bool,
    /// The status that ends the stream once its requests are answered; `None` for OK.
    end: Option<Status>,
    /// The last request, which another thread is decoding.
    preparing: Option<PreparingReply>,
    /// An error in a model's response ends the stream with its status, as the client asked for in the metadata. Errors
    /// before submission never do.
    is_strict: bool,
    deadline: Option<Timer>,
    responses: ResponseReceiver,
    /// Requests with answers in order, from number `first_ordered` on.
    ordered: VecDeque<OrderedItem>,
    first_ordered: u64,
    /// Requests of decoupled models whose final response has not arrived.
    decoupled: HashMap<u64, OpenRequest>,
    next_decoupled: u64,
    /// The replies to send next.
    ready: VecDeque<OutgoingReply>,
    /// Bytes of the requests without response, and of the ordered responses that wait.
    outstanding: usize,
    /// The reservation for those ordered responses. The receiver counts the others.
    memory: MemoryReservation,
    is_done: bool,
    /// The record of the call; each request has its own.
    told: CallRecord,
    /// Held while requests lack their responses: the exit waits for those, but not for a stream that is merely open.
    in_flight: Option<RequestGuard>,
    _open: RequestGuard,
}

/// A request whose response has a place in the order.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each request of a stream, and few of them wait"
)]
enum OrderedItem {
    Running(OpenRequest),
    Answered(OutgoingReply),
}

/// A request of the stream, as far as it could be read.
struct Read {
    id: String,
    version: String,
    is_decoupled: bool,
    size: usize,
    decoded: Result<Decoded>,
    subject: Subject,
}

impl Read {
    /// Reads the inputs in shared memory.
    fn with_regions(mut self) -> Self {
        self.decoded = self.decoded.and_then(Decoded::read_regions);
        self
    }
}

type PreparingReply = Pin<Box<dyn Future<Output = Result<Read>> + Send>>;

type Item = Result<Vec<Bytes>, Status>;

impl InferStream {
    /// Returns the stream of a call with this head, whose requests are `messages`.
    pub fn new(
        state: &Arc<ServerState>,
        headers: &HeaderMap,
        InferHead { deadline, format, .. }: InferHead,
        messages: Messages,
        sender: Sender,
        told: CallRecord,
    ) -> Self {
        let is_strict = headers.get("triton_grpc_error").is_some_and(|v| v == "true");
        let options = &state.options;
        let responses =
            ResponseReceiver::new(options.max_unread, OnOverflow::Discard, &options.memory);
        Self {
            state: state.clone(),
            messages,
            sender,
            form: MessageForm { limit: options.max_response_size, is_framed: format.is_none() },
            has_more_requests: true,
            end: None,
            preparing: None,
            is_strict,
            deadline: deadline.map(|at| timer::at(at.into())),
            responses,
            ordered: VecDeque::new(),
            first_ordered: 0,
            decoupled: HashMap::new(),
            next_decoupled: 0,
            ready: VecDeque::new(),
            outstanding: 0,
            memory: options.memory.reservation(),
            is_done: false,
            told,
            in_flight: None,
            _open: state.streams.begin(),
        }
    }

    /// Reads the available requests within the bounds. Fails if the stream itself is broken.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        while !self.is_full() {
            if let Some(preparing) = &mut self.preparing {
                let Poll::Ready(read) = preparing.as_mut().poll(cx) else { break };
                self.preparing = None;
                self.start(read.map_err(|e| status_of(&e))?);
                continue;
            }
            if !self.has_more_requests {
                break;
            }
            match self.messages.poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(None) => self.has_more_requests = false,
                Poll::Ready(Some(message)) => match self.counted(message).and_then(with_weight) {
                    Ok(message) => self.read(message)?,
                    Err(status) => self.end_with(status)?,
                },
            }
        }
        Ok(())
    }

    /// Counts a message as a request in progress.
    fn counted(&mut self, message: Result<Message, Status>) -> Result<Message, Status> {
        if self.in_flight.is_none() {
            self.in_flight = Some(self.state.in_flight.begin());
        }
        message
    }

    /// At least one request is always read, however full the server is, because the stream waits for it.
    fn is_full(&self) -> bool {
        let count = self.ordered.len() + self.decoupled.len() + self.ready.len();
        count >= MAX_OUTSTANDING
            || self.outstanding >= MAX_OUTSTANDING_BYTES
            || (count > 0 && is_short_of_memory(&self.state.options.memory))
    }

    /// Ends the stream. If the server is full, its open requests are answered first; any other status ends it at once.
    fn end_with(&mut self, status: Status) -> Result<(), Status> {
        if status.code() != tonic::Code::ResourceExhausted {
            return Err(status);
        }
        self.has_more_requests = false;
        self.end = Some(status);
        Ok(())
    }

    fn read(&mut self, message: Message) -> Result<(), Status> {
        self.sender.caller.renew();
        if is_heavy(&message.bytes) {
            let (state, mut sender) = (self.state.clone(), self.sender.clone());
            self.prepare(move || read(&state, message, &mut sender).map(Read::with_regions));
            return Ok(());
        }
        let read = read(&self.state, message, &mut self.sender).map_err(|e| status_of(&e))?;
        if is_heavy_to_read(&read.decoded) {
            self.prepare(move || Ok(read.with_regions()));
        } else {
            self.start(read);
        }
        Ok(())
    }

    /// Reads the next request on another thread.
    fn prepare(&mut self, read: impl FnOnce() -> Result<Read> + Send + 'static) {
        let read = self.state.options.heavy_work.run(read);
        self.preparing = Some(Box::pin(async { read.await? }));
    }

    /// A request whose model is not found takes a place in the order, like one of an ordinary model.
    fn start(&mut self, read: Read) {
        match read.is_decoupled {
            true => self.start_decoupled(read),
            false => self.start_ordered(read),
        }
    }

    fn start_ordered(&mut self, read: Read) {
        let key = ResponseKey::Ordered(self.first_ordered + self.ordered.len() as u64);
        match self.submit(key, read) {
            Ok(open) => self.ordered.push_back(OrderedItem::Running(open)),
            Err(refusal) => self.answer_next_ordered(refusal),
        }
    }

    fn start_decoupled(&mut self, read: Read) {
        let number = self.next_decoupled;
        self.next_decoupled += 1;
        match self.submit(ResponseKey::Unordered(number), read) {
            Ok(open) => drop(self.decoupled.insert(number, open)),
            Err(refusal) => {
                self.outstanding += refusal.size;
                self.memory.grow(refusal.size);
                self.ready.push_back(refusal);
            }
        }
    }

    /// Submits a request to its model. The error is the reply of a refusal.
    fn submit(&mut self, key: ResponseKey, read: Read) -> Result<OpenRequest, OutgoingReply> {
        let Read { id, version, size, decoded, subject, .. } = read;
        let mut told = self.told.of_request(&self.state.options.requests);
        told.begins(subject, size);
        let submitted = decoded.and_then(|decoded| {
            let responses = &self.responses;
            decoded.submit(&mut told.exchange, |cancellation| {
                responses.responder(key, cancellation.clone())
            })
        });
        match submitted {
            Ok(running) => {
                self.outstanding += size;
                let (running, form, is_strict) = (Arc::new(running), self.form, self.is_strict);
                Ok(OpenRequest { id, told, version, running, form, is_strict, size })
            }
            Err(error) => {
                let sending = told.exchange.begin_sending();
                told.ended(Some(&error));
                let size = REPLY_WEIGHT + id.len();
                let reply = OutgoingReply::ready(refusal_reply(&error, id, self.form));
                Err(reply.with_size(size).with_sending(sending))
            }
        }
    }

    fn answer_next_ordered(&mut self, reply: OutgoingReply) {
        self.outstanding += reply.size;
        self.memory.grow(reply.size);
        self.ordered.push_back(OrderedItem::Answered(reply));
        self.release_ordered();
    }

    /// Sorts the received responses, until there is something to send or nothing is left.
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

    /// The first response counts; any further one of the model is dropped.
    fn sort_ordered(&mut self, number: u64, received: KeyedResponse) {
        let index = number.checked_sub(self.first_ordered).and_then(|n| usize::try_from(n).ok());
        let Some(entry) = index.and_then(|n| self.ordered.get_mut(n)) else { return };
        if let OrderedItem::Running(open) = entry {
            self.outstanding -= open.size;
            open.told.record_response(&received.response.result);
            let sending = open.told.exchange.begin_sending();
            open.told.ended(None);
            let reply = open.only_reply(received, &self.state.options).with_sending(sending);
            self.outstanding += reply.size;
            self.memory.grow(reply.size);
            *entry = OrderedItem::Answered(reply);
            self.release_ordered();
        }
    }

    fn sort_decoupled(&mut self, number: u64, received: KeyedResponse) {
        let is_final = received.response.is_final;
        let weight = received.weight();
        let Some(open) = self.decoupled.get_mut(&number) else { return };
        open.told.record_response(&received.response.result);
        let reply = open.reply(received, &self.state.options);
        let sending = reply.as_ref().and_then(|_| open.told.exchange.begin_sending());
        if is_final {
            open.told.ended(None);
        }
        match reply {
            Some(reply) => self.ready.push_back(reply.with_sending(sending)),
            None => self.responses.release(weight),
        }
        if is_final && let Some(open) = self.decoupled.remove(&number) {
            self.outstanding -= open.size;
        }
    }

    /// Releases responses in order, as soon as no earlier one is missing.
    fn release_ordered(&mut self) {
        while let Some(OrderedItem::Answered(_)) = self.ordered.front() {
            self.first_ordered += 1;
            self.responses.await_ordered(self.first_ordered);
            if let Some(OrderedItem::Answered(reply)) = self.ordered.pop_front() {
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
        match self.poll_ready(cx) {
            Some(Poll::Ready(reply)) => {
                self.responses.release(reply.weight);
                Poll::Ready(Some(reply.item))
            }
            Some(Poll::Pending) => Poll::Pending,
            None if self.is_idle() && !self.has_more_requests => {
                Poll::Ready(self.end.take().map(Err))
            }
            None => {
                if self.is_idle() {
                    self.in_flight = None;
                }
                Poll::Pending
            }
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Option<Poll<Reply>> {
        if self.ready.front_mut()?.poll(cx).is_pending() {
            return Some(Poll::Pending);
        }
        let outgoing = self.ready.pop_front()?;
        self.outstanding -= outgoing.size;
        self.memory.shrink_to(self.memory.bytes().saturating_sub(outgoing.size));
        outgoing.into_reply().map(Poll::Ready)
    }

    fn is_idle(&self) -> bool {
        self.preparing.is_none() && self.ordered.is_empty() && self.decoupled.is_empty()
    }

    /// Stops sending and reading, and cancels open requests.
    fn finish(&mut self, status: Option<&Status>) {
        self.told.stream_ended(status);
        self.is_done = true;
        self.has_more_requests = false;
        self.preparing = None;
        self.ordered.clear();
        self.decoupled.clear();
        self.ready.clear();
        self.memory.shrink_to(0);
        self.responses.close();
    }

    /// Returns the next message to send. After a status, or `None`, there is nothing more.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let polled = self.poll_reply(cx);
        match &polled {
            Poll::Ready(None) => self.finish(None),
            Poll::Ready(Some(Err(status))) => self.finish(Some(status)),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }
}

/// Adds the memory of a request besides its message.
fn with_weight(mut message: Message) -> Result<Message, Status> {
    message.memory.try_grow(REQUEST_WEIGHT).map_err(over_budget)?;
    Ok(message)
}

/// Reads a request. An error means that the bytes are not a request, which ends the stream.
fn read(state: &ServerState, message: Message, sender: &mut Sender) -> Result<Read> {
    let Message { bytes, memory } = message;
    let size = bytes.remaining();
    let message = RequestMessage::read(bytes)?;
    let (id, version) = (message.id().to_owned(), message.model_version().to_owned());
    let mut subject = Subject::default();
    subject.set_id(&id);
    // A server that shuts down accepts no more requests, even on an open stream.
    let found = match state.in_flight.is_closed() {
        true => Err(Error::unavailable(SHUTTING_DOWN)),
        false => find_model(&state.engine, &message, sender, &mut subject),
    };
    let is_decoupled = found.as_ref().is_ok_and(|found| found.config().is_decoupled());
    let decoded = found.and_then(|found| decode_for(found, message, memory, sender));
    Ok(Read { id, version, is_decoupled, size, decoded, subject })
}

fn overflow() -> Status {
    Status::resource_exhausted(
        "the client does not read its responses: too many of them wait to be sent",
    )
}
