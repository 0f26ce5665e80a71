//! One ModelInfer, from its head to its response.
//!
//! A state machine by hand, not an `async fn`: it is a fraction of the size, and is moved into its place for every call.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Buf;
use galatea_frontend::{Caller, CompressionFormat, Subject};
use galatea_types::{InferResponse, Responder, Result};
use http::{HeaderMap, Response};
use tokio::{sync::oneshot, time::Sleep};
use tonic::Status;

use crate::{
    compression,
    content::Content,
    deadline::deadline_of,
    forwarded::Forwarded,
    infer::{self, Pending, Prepared, unanswered},
    message::{Message, over_budget},
    messages::{Decompressing, Messages, Received},
    outgoing::{self, MessageBody},
    state::ServerState,
    status::status_of,
    told::Told,
};

/// What the head of a call says about its inferences.
#[derive(Clone, Copy)]
pub(crate) struct InferHead {
    pub deadline: Option<Instant>,
    /// Of the responses.
    pub format: Option<CompressionFormat>,
}

impl InferHead {
    pub fn of(headers: &HeaderMap, state: &ServerState) -> Self {
        let level = state.options.response_compression;
        let format = compression::format_of_response(level, headers);
        Self { deadline: deadline_of(headers), format }
    }
}

/// A call of ModelInfer that is being answered.
pub(crate) struct UnaryInfer {
    state: Arc<ServerState>,
    head: InferHead,
    forwarded: Forwarded,
    caller: Caller,
    told: Told,
    stage: Stage,
}

/// What is waited for. What is done elsewhere is in a box: it is long, and seldom.
#[allow(clippy::large_enum_variant, reason = "in place: most calls begin with the large kind")]
enum Stage {
    Message(Messages),
    Unpacked(Decompressing),
    /// Read by another thread.
    Prepared(Elsewhere<Result<(Result<Prepared>, Subject)>>),
    Answer(Executing),
    /// Written, or compressed, by another thread.
    Written(Elsewhere<Result<MessageBody, Status>>),
}

type Elsewhere<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type ModelAnswer = Result<InferResponse>;

struct Executing {
    answer: oneshot::Receiver<ModelAnswer>,
    /// Until the answer is there.
    pending: Option<Pending>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl UnaryInfer {
    pub fn new(
        state: Arc<ServerState>,
        head: InferHead,
        messages: Messages,
        (forwarded, caller): (Forwarded, Caller),
        told: Told,
    ) -> Self {
        Self { state, head, forwarded, caller, told, stage: Stage::Message(messages) }
    }

    /// The response. Dropped before it is there, it cancels the request.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Content>, Status>> {
        let answered = ready!(self.poll_answer(cx));
        Poll::Ready(match answered {
            Ok(body) => {
                self.told.succeeded(body.size() as u64);
                Ok(outgoing::response(Content::Message(body), self.head.format))
            }
            Err(status) => Err(self.told.refused(status)),
        })
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<MessageBody, Status>> {
        loop {
            match &mut self.stage {
                Stage::Message(messages) => match ready!(messages.poll_only(cx))? {
                    Received::Plain(message) => self.prepare(message)?,
                    Received::Compressed(message, format) => {
                        self.stage = Stage::Unpacked(messages.decompress(message, format));
                    }
                },
                Stage::Unpacked(message) => {
                    let message = ready!(message.as_mut().poll(cx))?;
                    self.prepare(message)?;
                }
                Stage::Prepared(prepared) => {
                    let prepared = ready!(prepared.as_mut().poll(cx));
                    let (prepared, subject) = prepared.map_err(|e| status_of(&e))?;
                    self.submit(prepared, subject)?;
                }
                Stage::Answer(executing) => {
                    let answer = ready!(executing.poll(cx))?;
                    let Some(pending) = executing.pending.take() else {
                        return Poll::Ready(Err(status_of(&unanswered())));
                    };
                    if let Some(body) = self.write(answer, pending)? {
                        return Poll::Ready(Ok(body));
                    }
                }
                Stage::Written(written) => return written.as_mut().poll(cx),
            }
        }
    }
}

impl UnaryInfer {
    /// The message is there.
    fn prepare(&mut self, message: Message) -> Result<(), Status> {
        self.told.exchange.has_received(message.bytes.remaining());
        let limit = self.state.options.max_response_size;
        let mut subject = Subject::default();
        if infer::is_heavy(&message.bytes) {
            let engine = self.state.engine.clone();
            let (forwarded, caller) = (self.forwarded.clone(), self.caller.clone());
            let prepare = move || {
                let sent = (&forwarded, &caller);
                let prepared = infer::prepare_unary(&engine, message, sent, (limit, &mut subject));
                (prepared, subject)
            };
            let prepared = self.state.options.heavy_work.run(prepare);
            self.stage = Stage::Prepared(Box::pin(async { Ok(prepared.await?) }));
            return Ok(());
        }
        let (engine, sent) = (&self.state.engine, (&self.forwarded, &self.caller));
        let prepared = infer::prepare_unary(engine, message, sent, (limit, &mut subject));
        self.submit(prepared, subject)
    }

    /// Hands the request to its model.
    #[expect(
        clippy::disallowed_methods,
        reason = "the deadline is tokio's time, which tests can move"
    )]
    fn submit(&mut self, prepared: Result<Prepared>, subject: Subject) -> Result<(), Status> {
        let exchange = &mut self.told.exchange;
        if let Some(known) = exchange.subject() {
            *known = subject;
        }
        let mut prepared = prepared.map_err(|e| status_of(&e))?;
        prepared.context.deadline = self.head.deadline;
        let (responder, answer) = Responder::unary();
        let pending = prepared.submit(responder, exchange).map_err(|e| status_of(&e))?;
        let deadline = self.head.deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
        self.stage = Stage::Answer(Executing { answer, pending: Some(pending), deadline });
        Ok(())
    }

    /// The model has answered. `None`: it is written elsewhere.
    fn write(
        &mut self,
        answer: ModelAnswer,
        pending: Pending,
    ) -> Result<Option<MessageBody>, Status> {
        if answer.is_ok() {
            self.told.exchange.has_result();
        }
        if self.head.format.is_none() && !pending.is_heavy(&answer) {
            let pieces = pending.render_pieces(answer, true).map_err(|e| status_of(&e))?;
            return Ok(Some(MessageBody::new(pieces)));
        }
        let written = write_elsewhere(self.state.clone(), answer, pending, self.head.format);
        self.stage = Stage::Written(Box::pin(written));
        Ok(None)
    }
}

impl Executing {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ModelAnswer, Status>> {
        if let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(cx) {
            // A responder answers also when it is dropped, so the channel never closes empty.
            return Poll::Ready(Ok(answer.unwrap_or_else(|_| Err(unanswered()))));
        }
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(Status::deadline_exceeded("Deadline Exceeded")))
    }
}

async fn write_elsewhere(
    state: Arc<ServerState>,
    answer: ModelAnswer,
    pending: Pending,
    format: Option<CompressionFormat>,
) -> Result<MessageBody, Status> {
    let is_framed = format.is_none();
    let written = if pending.is_heavy(&answer) {
        let mut memory = state.options.memory.reservation();
        pending.count_to(&mut memory, &answer).map_err(over_budget)?;
        let write = move || pending.render_pieces(answer, is_framed);
        let written = state.options.heavy_work.run(write).await;
        written.unwrap_or_else(|error| Err(error.into()))
    } else {
        pending.render_pieces(answer, is_framed)
    };
    let pieces = written.map_err(|e| status_of(&e))?;
    Ok(match format {
        None => MessageBody::new(pieces),
        Some(format) => MessageBody::compressed(pieces, format, &state).await,
    })
}
