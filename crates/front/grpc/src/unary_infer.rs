//! One ModelInfer, from its head to its response.
//!
//! A state machine by hand, not an `async fn`: it is a fraction of the size, and is moved into its place for every call.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use galatea_engine::call::UnaryAnswer;
use galatea_frontend::{CompressionFormat, Subject};
use galatea_protocol::grpc::Envelope;
use galatea_trace::SendTrace;
use galatea_types::{Error, InferResponse, Result};
use http::Response;
use tonic::Status;

use crate::{
    call_record::CallRecord,
    content::Content,
    infer::{self, Decoded, InferHead, MessageForm, RunningRequest},
    load_report,
    message::{Message, over_budget},
    messages::{Decompressing, Messages, ReceivedMessage},
    response_body::{self, MessageBody},
    sender::Sender,
    state::ServerState,
    status::status_of,
    timer::{self, Timer},
};

pub(crate) struct UnaryInfer {
    state: Arc<ServerState>,
    head: InferHead,
    sender: Sender,
    told: CallRecord,
    stage: InferStage,
}

/// The step that this call waits for. Rare steps are boxed because they are large and would make every call larger.
#[allow(clippy::large_enum_variant, reason = "in place: most calls begin with the large kind")]
enum InferStage {
    Message(Messages),
    Unpacked(Decompressing),
    /// Decoding on another thread.
    Decoded(BoxedStep<Result<(Result<Decoded>, Subject)>>),
    Answer(RunningInfer),
    /// Encoding or compression on another thread.
    Written(BoxedStep<Result<MessageBody, Status>>),
}

type BoxedStep<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type ModelAnswer = Result<InferResponse>;

struct RunningInfer {
    answer: UnaryAnswer,
    /// The request; `None` once the answer has arrived.
    running: Option<RunningRequest>,
    deadline: Option<Timer>,
}

impl UnaryInfer {
    pub fn new(
        state: Arc<ServerState>,
        head: InferHead,
        messages: Messages,
        sender: Sender,
        told: CallRecord,
    ) -> Self {
        Self { state, head, sender, told, stage: InferStage::Message(messages) }
    }

    /// Returns the response. Dropping this earlier cancels the request.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Content>, Status>> {
        let answered = ready!(self.poll_answer(cx));
        Poll::Ready(match answered {
            Ok(mut body) => {
                body.sending = self.told.exchange.begin_sending();
                self.told.succeeded(body.size() as u64);
                if self.head.has_report {
                    body.add_report(&self.state.engine, &self.sender.caller);
                }
                Ok(response_body::response(Content::Message(body), self.head.format))
            }
            Err(status) => {
                // A client that has cancelled its call, or whose deadline has passed, is sent nothing.
                if !matches!(status.code(), tonic::Code::Cancelled | tonic::Code::DeadlineExceeded)
                {
                    self.told.exchange.begin_sending().into_iter().for_each(SendTrace::finish);
                }
                let status = self.told.refused(status);
                Err(match self.head.has_report {
                    true => load_report::added_to(&status, &self.state.engine, &self.sender.caller),
                    false => status,
                })
            }
        })
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<MessageBody, Status>> {
        loop {
            match &mut self.stage {
                InferStage::Message(messages) => match ready!(messages.poll_only(cx))? {
                    ReceivedMessage::Plain(message) => self.decode(message)?,
                    ReceivedMessage::Compressed(message, format) => {
                        self.stage = InferStage::Unpacked(messages.decompress(message, format));
                    }
                },
                InferStage::Unpacked(message) => {
                    let message = ready!(message.as_mut().poll(cx))?;
                    self.decode(message)?;
                }
                InferStage::Decoded(decoded) => {
                    let decoded = ready!(decoded.as_mut().poll(cx));
                    let (decoded, subject) = decoded.map_err(|e| status_of(&e))?;
                    self.submit(decoded, subject)?;
                }
                InferStage::Answer(executing) => {
                    let answer = ready!(executing.poll(cx))?;
                    let Some(running) = executing.running.take() else {
                        return Poll::Ready(Err(status_of(&Error::unanswered())));
                    };
                    if let Some(body) = self.write(answer, running)? {
                        return Poll::Ready(Ok(body));
                    }
                }
                InferStage::Written(written) => return written.as_mut().poll(cx),
            }
        }
    }
}

impl UnaryInfer {
    fn decode(&mut self, message: Message) -> Result<(), Status> {
        self.told.exchange.record_received(message.bytes.remaining());
        let mut subject = Subject::default();
        if infer::is_heavy(&message.bytes) {
            let (engine, mut sender) = (self.state.engine.clone(), self.sender.clone());
            let decode = move || {
                let decoded = infer::decode_unary(&engine, message, &mut sender, &mut subject);
                (decoded.and_then(Decoded::read_regions), subject)
            };
            self.decode_elsewhere(decode);
            return Ok(());
        }
        let (engine, sender) = (&self.state.engine, &mut self.sender);
        let decoded = infer::decode_unary(engine, message, sender, &mut subject);
        if infer::is_heavy_to_read(&decoded) {
            self.decode_elsewhere(|| (decoded.and_then(Decoded::read_regions), subject));
            return Ok(());
        }
        self.submit(decoded, subject)
    }

    fn decode_elsewhere(
        &mut self,
        decode: impl FnOnce() -> (Result<Decoded>, Subject) + Send + 'static,
    ) {
        let decoded = self.state.options.heavy_work.run(decode);
        self.stage = InferStage::Decoded(Box::pin(async { Ok(decoded.await?) }));
    }

    fn submit(&mut self, decoded: Result<Decoded>, subject: Subject) -> Result<(), Status> {
        let exchange = &mut self.told.exchange;
        exchange.set_subject(subject);
        let submitted = decoded.and_then(|decoded| decoded.submit_unary(exchange));
        let (running, answer) = submitted.map_err(|e| status_of(&e))?;
        let deadline = self.head.deadline.map(|at| timer::at(at.into()));
        self.stage = InferStage::Answer(RunningInfer { answer, running: Some(running), deadline });
        Ok(())
    }

    /// Encodes the answer of the model. Returns `None` if another thread does it.
    fn write(
        &mut self,
        answer: ModelAnswer,
        running: RunningRequest,
    ) -> Result<Option<MessageBody>, Status> {
        if answer.is_ok() {
            self.told.exchange.record_result();
        }
        let is_framed = self.head.format.is_none();
        let form = MessageForm { limit: self.state.options.max_response_size, is_framed };
        if is_framed && !infer::is_heavy_answer(running.plan(), &answer) {
            let pieces = form.render(&running, answer, Envelope::Unary);
            return Ok(Some(MessageBody::new(pieces.map_err(|e| status_of(&e))?)));
        }
        let written = write_elsewhere(self.state.clone(), answer, running, self.head.format);
        self.stage = InferStage::Written(Box::pin(written));
        Ok(None)
    }
}

impl RunningInfer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ModelAnswer, Status>> {
        if let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(cx) {
            return Poll::Ready(Ok(answer));
        }
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(Status::deadline_exceeded("Deadline Exceeded")))
    }
}

async fn write_elsewhere(
    state: Arc<ServerState>,
    answer: ModelAnswer,
    running: RunningRequest,
    format: Option<CompressionFormat>,
) -> Result<MessageBody, Status> {
    let options = &state.options;
    let form = MessageForm { limit: options.max_response_size, is_framed: format.is_none() };
    let written = if infer::is_heavy_answer(running.plan(), &answer) {
        let mut memory = options.memory.reservation();
        infer::count_answer(running.plan(), &answer, &mut memory).map_err(over_budget)?;
        let write = move || form.render(&running, answer, Envelope::Unary);
        let written = options.heavy_work.run(write).await;
        written.unwrap_or_else(|error| Err(error.into()))
    } else {
        form.render(&running, answer, Envelope::Unary)
    };
    let pieces = written.map_err(|e| status_of(&e))?;
    Ok(match format {
        None => MessageBody::new(pieces),
        Some(format) => MessageBody::compressed(pieces, format, &state).await,
    })
}
