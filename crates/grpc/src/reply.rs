//! What a stream sends back for a response, an end without one, or an error.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use galatea_frontend::KeyedResponse;
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use galatea_protocol::grpc::parameter_message;
use galatea_types::{Error, ParameterValue, Response};
use tonic::Status;

use crate::{
    GrpcOptions,
    infer::{Pending, unanswered},
    status::status_of,
    told::Told,
};

/// A message of a stream, or the status that ends it.
pub(crate) struct Reply {
    pub item: Result<ModelStreamInferResponse, Status>,
    /// Bytes to release from the backlog once it is sent.
    pub weight: usize,
}

/// What a reply takes beside its tensors and its id, about.
pub(crate) const REPLY_WEIGHT: usize = 2 << 10;

/// A reply on its way to the client.
pub(crate) struct Outgoing {
    reply: Rendered,
    /// Bytes of the response that are counted to the stream until it is sent.
    pub size: usize,
}

/// A reply that is there, or one that is being made by another thread.
enum Rendered {
    Ready(Box<Reply>),
    Rendering(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// A request of a stream whose final response has not come.
pub(crate) struct Open {
    pub id: String,
    pub told: Told,
    /// As the client wrote it: empty when it left the choice to the server.
    pub version: String,
    pub pending: Arc<Pending>,
    /// The stream ends with the first error of a model.
    pub is_strict: bool,
    /// Bytes of the request's message.
    pub size: usize,
}

impl Open {
    /// The reply of an ordinary model, which answers once.
    pub fn only_reply(&self, mut received: KeyedResponse, options: &GrpcOptions) -> Outgoing {
        received.response.result.get_or_insert_with(|| Err(unanswered()));
        received.response.is_final = true;
        let size = REPLY_WEIGHT + self.id.len() + size_of(&received.response);
        let unanswered = || self.named_as().failure(&unanswered(), true, 0);
        let reply = self.reply(received, options);
        reply.unwrap_or_else(|| Outgoing::ready(unanswered())).with_size(size)
    }

    /// The reply; `None` for an end without a response, unless the client asked for those.
    pub fn reply(&self, received: KeyedResponse, options: &GrpcOptions) -> Option<Outgoing> {
        let weight = received.weight();
        let is_final = received.response.is_final;
        let Some(result) = received.response.result else {
            let item = (is_final && self.pending.wants_empty_final())
                .then(|| Ok(self.named_as().message(String::new(), is_final)));
            return item.map(|item| Outgoing::ready(Reply { item, weight }));
        };
        let named = self.named_as();
        if !self.pending.is_heavy(&result) {
            let rendered = self.pending.render(result);
            return Some(Outgoing::ready(named.reply(rendered, is_final, weight)));
        }
        let mut memory = options.memory.reservation();
        if let Err(error) = self.pending.count_to(&mut memory, &result) {
            return Some(Outgoing::ready(named.reply(Err(error.into()), is_final, weight)));
        }
        let pending = self.pending.clone();
        let rendered = options.heavy_work.run(move || pending.render(result));
        let rendering = async move {
            let rendered = rendered.await.unwrap_or_else(|error| Err(error.into()));
            drop(memory);
            named.reply(rendered, is_final, weight)
        };
        Some(Outgoing { reply: Rendered::Rendering(Box::pin(rendering)), size: 0 })
    }

    fn named_as(&self) -> Named {
        Named {
            id: self.id.clone(),
            model: self.pending.model().config().name().clone(),
            version: self.version.clone(),
            is_strict: self.is_strict,
        }
    }
}

impl Outgoing {
    pub fn ready(reply: Reply) -> Self {
        Self { reply: Rendered::Ready(Box::new(reply)), size: 0 }
    }

    pub fn with_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// Whether the reply is there.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Rendered::Rendering(rendering) = &mut self.reply {
            let reply = ready!(rendering.as_mut().poll(cx));
            self.reply = Rendered::Ready(Box::new(reply));
        }
        Poll::Ready(())
    }

    /// The reply that is there.
    pub fn into_reply(self) -> Option<Reply> {
        match self.reply {
            Rendered::Ready(reply) => Some(*reply),
            Rendered::Rendering(_) => None,
        }
    }
}

/// Bytes of the tensors.
fn size_of(response: &Response) -> usize {
    let Some(Ok(response)) = &response.result else { return 0 };
    response.byte_size()
}

/// What the replies to a request are called.
struct Named {
    id: String,
    model: Arc<str>,
    version: String,
    is_strict: bool,
}

impl Named {
    fn reply(
        self,
        rendered: Result<ModelInferResponse, Error>,
        is_final: bool,
        weight: usize,
    ) -> Reply {
        match rendered {
            Ok(response) => Reply { item: Ok(marked(String::new(), response, is_final)), weight },
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

    /// Without outputs, but with id, model and version as the client wrote them.
    fn message(self, error_message: String, is_final: bool) -> ModelStreamInferResponse {
        let response = ModelInferResponse {
            id: self.id,
            model_name: self.model.to_string(),
            model_version: self.version,
            ..Default::default()
        };
        marked(error_message, response, is_final)
    }
}

/// An error from before the model had the request: it goes with the id alone, also on a strict stream.
pub(crate) fn refusal_reply(error: &Error, id: String) -> Reply {
    let item = Ok(ModelStreamInferResponse {
        error_message: error.message().to_owned(),
        infer_response: Some(ModelInferResponse { id, ..Default::default() }),
    });
    Reply { item, weight: 0 }
}

/// With the parameter that marks the final response. Every model's replies have it, so that a client need not know which
/// are decoupled.
fn marked(
    error_message: String,
    mut response: ModelInferResponse,
    is_final: bool,
) -> ModelStreamInferResponse {
    let marker = parameter_message(ParameterValue::Bool(is_final));
    response.parameters.insert("triton_final_response".to_owned(), marker);
    ModelStreamInferResponse { error_message, infer_response: Some(response) }
}
