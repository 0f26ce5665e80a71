//! One inference: message in, message out.

use std::{sync::Arc, time::Instant};

use galatea_engine::{Engine, ServedModel};
use galatea_proto::inference::{ModelInferRequest, ModelInferResponse};
use galatea_protocol::{
    classify,
    grpc::{DecodedRequest, check_message_size, decode, encode},
    parse_model_version,
};
use galatea_types::{
    Cancellation, Error, InferRequest, InferResponse, RequestedOutput, Responder, Result,
};
use tokio::sync::oneshot;
use tonic::Status;

use crate::status::status_of;

/// A request on its way, with what is needed to make its answer.
///
/// Dropped before the answer is there (the client hung up, its deadline passed), it cancels the request.
pub(crate) struct Pending {
    pub answer: oneshot::Receiver<Result<InferResponse>>,
    rendering: Rendering,
    cancellation: Cancellation,
}

/// How the client wants to see the response.
struct Rendering {
    model: Arc<ServedModel>,
    /// Outputs wanted as classes; empty in nearly every request.
    classifications: Vec<RequestedOutput>,
    max_message_size: usize,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl Pending {
    pub fn render(&self, answer: Result<InferResponse>) -> Result<ModelInferResponse> {
        self.rendering.render(answer?)
    }
}

/// Finds the model, reads the request and hands it to the engine. Fails with what is wrong before the
/// engine has seen the request. The engine's own refusals come as the answer, on a strict stream as a
/// failure too.
pub(crate) fn submit(
    engine: &Engine,
    message: ModelInferRequest,
    max_message_size: usize,
    caller: Caller,
) -> Result<Pending> {
    let version = parse_model_version(&message.model_version)?;
    let model = engine.model(&message.model_name, version)?;
    refuse_decoupled(model.config().is_decoupled, caller)?;
    let DecodedRequest { mut request, .. } = decode(message, model.config())?;
    if caller == (Caller::Stream { is_strict: true }) {
        model.check(&mut request)?;
    }
    let (responder, answer) = Responder::unary();
    let cancellation = request.cancellation.clone();
    let classifications = classifications(&request);
    model.infer(request, responder);
    Ok(Pending {
        answer,
        rendering: Rendering { model, classifications, max_message_size },
        cancellation,
    })
}

/// Which kind of call a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Unary,
    Stream { is_strict: bool },
}

/// G-54. A model that may answer any number of times has no place in a call with one answer.
fn refuse_decoupled(is_decoupled: bool, caller: Caller) -> Result<()> {
    if !is_decoupled {
        return Ok(());
    }
    Err(Error::unsupported(match caller {
        Caller::Unary => "ModelInfer RPC doesn't support models with decoupled transaction policy",
        Caller::Stream { .. } => {
            "ModelStreamInfer does not support decoupled models in this version"
        }
    }))
}

fn classifications(request: &InferRequest) -> Vec<RequestedOutput> {
    request.outputs.iter().filter(|o| o.classification.is_some()).cloned().collect()
}

/// The whole of ModelInfer.
pub(crate) async fn infer(
    engine: &Engine,
    message: ModelInferRequest,
    deadline: Option<Instant>,
    max_message_size: usize,
) -> Result<ModelInferResponse, Status> {
    let mut pending =
        submit(engine, message, max_message_size, Caller::Unary).map_err(|e| status_of(&e))?;
    let answer = match deadline {
        None => (&mut pending.answer).await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), &mut pending.answer)
            .await
            .map_err(|_| Status::deadline_exceeded("Deadline Exceeded"))?,
    };
    pending.render(answer_of(answer)).map_err(|e| status_of(&e))
}

/// A responder answers also when it is dropped, so the channel never closes empty.
pub(crate) fn answer_of(
    received: Result<Result<InferResponse>, oneshot::error::RecvError>,
) -> Result<InferResponse> {
    received.unwrap_or_else(|_| Err(Error::internal("the request was dropped without a response")))
}

impl Rendering {
    fn render(&self, mut response: InferResponse) -> Result<ModelInferResponse> {
        for wanted in &self.classifications {
            self.classify_output(&mut response, wanted)?;
        }
        let message = encode(response);
        check_message_size(&message, self.max_message_size)?;
        Ok(message)
    }

    fn classify_output(
        &self,
        response: &mut InferResponse,
        wanted: &RequestedOutput,
    ) -> Result<()> {
        let Some(count) = wanted.classification else { return Ok(()) };
        let Some(output) = response.outputs.iter_mut().find(|t| t.name == wanted.name) else {
            return Ok(());
        };
        let label = |class| self.model.label(&wanted.name, class);
        *output = classify(output, count, self.model.config().has_batching(), label)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No decoupled model can be loaded yet, so this cannot be asked through a socket.
    #[test]
    fn decoupled_models_are_refused() {
        let unary = refuse_decoupled(true, Caller::Unary).expect_err("one answer only");
        let text = "ModelInfer RPC doesn't support models with decoupled transaction policy";
        assert_eq!((unary.code(), unary.message()), (galatea_types::Code::Unsupported, text));
        assert!(refuse_decoupled(true, Caller::Stream { is_strict: false }).is_err());
        assert!(refuse_decoupled(false, Caller::Unary).is_ok());
    }
}
