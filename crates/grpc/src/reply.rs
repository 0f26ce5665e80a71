//! What a stream sends back for a response, an end without one, or an error.

use galatea_frontend::KeyedResponse;
use galatea_proto::inference::{ModelInferResponse, ModelStreamInferResponse};
use galatea_protocol::grpc::parameter_message;
use galatea_types::{Error, ParameterValue};
use tonic::Status;

use crate::{
    infer::{Pending, unanswered},
    status::status_of,
};

/// A message of a stream, or the status that ends it.
pub(crate) struct Reply {
    pub item: Result<ModelStreamInferResponse, Status>,
    /// Bytes to release from the backlog once it is sent.
    pub weight: usize,
}

/// A request of a stream whose final response has not come.
pub(crate) struct Open {
    pub id: String,
    /// As the client wrote it: empty when it left the choice to the server.
    pub version: String,
    pub pending: Pending,
    /// The stream ends with the first error of a model.
    pub is_strict: bool,
}

impl Open {
    /// The reply of an ordinary model, which answers once.
    pub fn only_reply(&self, mut received: KeyedResponse) -> Reply {
        received.response.result.get_or_insert_with(|| Err(unanswered()));
        received.response.is_final = true;
        self.reply(received).unwrap_or_else(|| self.failure_reply(&unanswered(), true, 0))
    }

    /// The reply; `None` for an end without a response, unless the client asked for those.
    pub fn reply(&self, received: KeyedResponse) -> Option<Reply> {
        let weight = received.weight();
        let is_final = received.response.is_final;
        let item = match received.response.result {
            None if is_final && self.pending.wants_empty_final() => {
                self.named(String::new(), is_final)
            }
            None => return None,
            Some(result) => match self.pending.render(result) {
                Ok(response) => marked(String::new(), response, is_final),
                Err(error) => return Some(self.failure_reply(&error, is_final, weight)),
            },
        };
        Some(Reply { item: Ok(item), weight })
    }

    fn failure_reply(&self, error: &Error, is_final: bool, weight: usize) -> Reply {
        let item = match self.is_strict {
            true => Err(status_of(error)),
            false => Ok(self.named(error.message().to_owned(), is_final)),
        };
        Reply { item, weight }
    }

    /// Without outputs, but with id, model and version as the client wrote them.
    fn named(&self, error_message: String, is_final: bool) -> ModelStreamInferResponse {
        let response = ModelInferResponse {
            id: self.id.clone(),
            model_name: self.pending.model().config().name().to_string(),
            model_version: self.version.clone(),
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
