//! A reply on a stream: a response, an end without one, or an error.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_frontend::KeyedResponse;
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use galatea_protocol::grpc::{Envelope, FINAL_RESPONSE, encode_stream_message, parameter_message};
use galatea_trace::SendTrace;
use galatea_types::{Error, ParameterValue, Response};
use tonic::Status;

use crate::{
    GrpcOptions,
    call_record::CallRecord,
    infer::{MessageForm, RunningRequest, count_answer, is_heavy_answer},
    message::prefix,
    status::status_of,
};

pub(crate) struct Reply {
    pub item: Result<Vec<Bytes>, Status>,
    /// Bytes to release from the backlog once it is sent.
    pub weight: usize,
}

/// The approximate memory of a reply besides its tensors and its id.
pub(crate) const REPLY_WEIGHT: usize = 2 << 10;

pub(crate) struct OutgoingReply {
    reply: RenderedReply,
    /// Bytes of the response that count to the stream until it is sent.
    pub size: usize,
    /// The end of its trace, if the request is traced.
    sending: Option<SendTrace>,
}

enum RenderedReply {
    Ready(Box<Reply>),
    Rendering(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// A request of a stream whose final response has not arrived.
pub(crate) struct OpenRequest {
    pub id: String,
    pub told: CallRecord,
    /// The version as the client wrote it; empty if the server chose it.
    pub version: String,
    pub running: Arc<RunningRequest>,
    pub form: MessageForm,
    /// Is `true` if the stream ends with the first error of a model.
    pub is_strict: bool,
    /// The size of the request's message in bytes.
    pub size: usize,
}

impl OpenRequest {
    /// Returns the reply of an ordinary model, which answers once.
    pub fn only_reply(&self, mut received: KeyedResponse, options: &GrpcOptions) -> OutgoingReply {
        received.response.result.get_or_insert_with(|| Err(Error::unanswered()));
        received.response.is_final = true;
        let size = REPLY_WEIGHT + self.id.len() + size_of(&received.response);
        let unanswered = || self.named_as().failure(&Error::unanswered(), true, 0);
        let reply = self.reply(received, options);
        reply.unwrap_or_else(|| OutgoingReply::ready(unanswered())).with_size(size)
    }

    /// Returns the reply; `None` for an end without a response, unless the client asked for those.
    pub fn reply(&self, received: KeyedResponse, options: &GrpcOptions) -> Option<OutgoingReply> {
        let weight = received.weight();
        let is_final = received.response.is_final;
        let Some(result) = received.response.result else {
            let item = (is_final && self.running.plan().wants_empty_final())
                .then(|| Ok(self.named_as().message(String::new(), is_final)));
            return item.map(|item| OutgoingReply::ready(Reply { item, weight }));
        };
        let (named, form) = (self.named_as(), self.form);
        let envelope = Envelope::Stream { is_final };
        if !is_heavy_answer(self.running.plan(), &result) {
            let rendered = form.render(&self.running, result, envelope);
            return Some(OutgoingReply::ready(named.reply(rendered, is_final, weight)));
        }
        let mut memory = options.memory.reservation();
        if let Err(error) = count_answer(self.running.plan(), &result, &mut memory) {
            return Some(OutgoingReply::ready(named.reply(Err(error.into()), is_final, weight)));
        }
        let running = self.running.clone();
        let rendered = options.heavy_work.run(move || form.render(&running, result, envelope));
        let rendering = async move {
            let rendered = rendered.await.unwrap_or_else(|error| Err(error.into()));
            drop(memory);
            named.reply(rendered, is_final, weight)
        };
        Some(OutgoingReply {
            reply: RenderedReply::Rendering(Box::pin(rendering)),
            size: 0,
            sending: None,
        })
    }

    fn named_as(&self) -> ReplyNames {
        ReplyNames {
            id: self.id.clone(),
            model: self.running.model().config().name().clone(),
            version: self.version.clone(),
            is_strict: self.is_strict,
            form: self.form,
        }
    }
}

impl OutgoingReply {
    pub fn ready(reply: Reply) -> Self {
        Self { reply: RenderedReply::Ready(Box::new(reply)), size: 0, sending: None }
    }

    pub fn with_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    pub fn with_sending(self, sending: Option<SendTrace>) -> Self {
        Self { sending, ..self }
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let RenderedReply::Rendering(rendering) = &mut self.reply {
            let reply = ready!(rendering.as_mut().poll(cx));
            self.reply = RenderedReply::Ready(Box::new(reply));
        }
        Poll::Ready(())
    }

    pub fn into_reply(self) -> Option<Reply> {
        self.sending.into_iter().for_each(SendTrace::finish);
        match self.reply {
            RenderedReply::Ready(reply) => Some(*reply),
            RenderedReply::Rendering(_) => None,
        }
    }
}

/// Returns the bytes of the tensors.
fn size_of(response: &Response) -> usize {
    let Some(Ok(response)) = &response.result else { return 0 };
    response.byte_size()
}

struct ReplyNames {
    id: String,
    model: Arc<str>,
    version: String,
    is_strict: bool,
    form: MessageForm,
}

impl ReplyNames {
    fn reply(self, rendered: Result<Vec<Bytes>, Error>, is_final: bool, weight: usize) -> Reply {
        match rendered {
            Ok(pieces) => Reply { item: Ok(pieces), weight },
            Err(error) => self.failure(&error, is_final, weight),
        }
    }

    fn failure(self, error: &Error, is_final: bool, weight: usize) -> Reply {
        let item = match self.is_strict {
            true => Err(status_of(error)),
            false => Ok(self.message(error.message().to_owned(), is_final)),
        };
        Reply { item, weight }
    }

    /// Encodes a message without outputs, with the client's id, model and version and the mark that says if it is final.
    fn message(self, error_message: String, is_final: bool) -> Vec<Bytes> {
        let mark = parameter_message(ParameterValue::Bool(is_final));
        let response = ModelInferResponse {
            id: self.id,
            model_name: self.model.to_string(),
            model_version: self.version,
            parameters: [(FINAL_RESPONSE.to_owned(), mark)].into(),
            ..Default::default()
        };
        self.form.encode(error_message, response)
    }
}

/// Returns the reply for an error before submission. It has the id alone, and does not end a strict stream.
pub(crate) fn refusal_reply(error: &Error, id: String, form: MessageForm) -> Reply {
    let response = ModelInferResponse { id, ..Default::default() };
    Reply { item: Ok(form.encode(error.message().to_owned(), response)), weight: 0 }
}

impl MessageForm {
    /// Encodes a response without tensors.
    fn encode(self, error_message: String, response: ModelInferResponse) -> Vec<Bytes> {
        let message = ModelStreamInferResponse { error_message, infer_response: Some(response) };
        vec![match self.is_framed {
            true => encode_stream_message(&message, prefix),
            false => encode_stream_message(&message, |_| []),
        }]
    }
}
