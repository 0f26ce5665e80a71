//! One inference: message in, message out.

use std::{sync::Arc, time::Instant};

use galatea_engine::{Engine, ServedModel};
use galatea_frontend::CancelOnDrop;
use galatea_proto::inference::{ModelInferRequest, ModelInferResponse};
use galatea_protocol::{
    AnswerPlan, NoRegions,
    grpc::{check_message_size, decode, encode},
    parse_model_version,
};
use galatea_types::{
    Error, InferRequest, InferResponse, Refused, RequestContext, Responder, Result,
};
use tokio::sync::oneshot;
use tonic::Status;

use crate::status::status_of;

/// A request on its way, with what is needed to return its responses as the client asked.
///
/// Dropped before the final response is there (the client hung up, its deadline passed), it cancels the request.
pub(crate) struct Pending {
    model: Arc<ServedModel>,
    plan: AnswerPlan,
    max_response_size: usize,
    _cancel: CancelOnDrop,
}

pub(crate) fn find_model(engine: &Engine, message: &ModelInferRequest) -> Result<Arc<ServedModel>> {
    engine.model(&message.model_name, parse_model_version(&message.model_version)?)
}

/// Decodes a request that is then to be handed to the model.
pub(crate) fn read(
    model: Arc<ServedModel>,
    message: ModelInferRequest,
    max_response_size: usize,
) -> Result<(InferRequest, RequestContext, Pending)> {
    let context = RequestContext::new();
    let (request, plan) = decode(message, model.config(), &NoRegions)?;
    let _cancel = CancelOnDrop::new(context.cancellation.clone());
    Ok((request, context, Pending { model, plan, max_response_size, _cancel }))
}

/// Finds the model, reads the request and hands it to the engine. Fails where nothing is executed.
fn submit(
    engine: &Engine,
    message: ModelInferRequest,
    deadline: Option<Instant>,
    max_response_size: usize,
) -> Result<(Pending, oneshot::Receiver<Result<InferResponse>>)> {
    let model = find_model(engine, &message)?;
    if model.config().is_decoupled() {
        // It may respond any number of times, and this call has one response.
        return Err(Error::unsupported(
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ));
    }
    let (request, mut context, pending) = read(model, message, max_response_size)?;
    context.deadline = deadline;
    let (responder, answer) = Responder::unary();
    pending.model.infer(request, context, responder).map_err(Refused::into_error)?;
    Ok((pending, answer))
}

/// The whole of ModelInfer.
pub(crate) async fn infer(
    engine: &Engine,
    message: ModelInferRequest,
    deadline: Option<Instant>,
    max_response_size: usize,
) -> Result<ModelInferResponse, Status> {
    let (pending, answer) =
        submit(engine, message, deadline, max_response_size).map_err(|e| status_of(&e))?;
    let answer = match deadline {
        None => answer.await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), answer)
            .await
            .map_err(|_| Status::deadline_exceeded("Deadline Exceeded"))?,
    };
    // A responder answers also when it is dropped, so the channel never closes empty.
    let answer = answer.unwrap_or_else(|_| Err(unanswered()));
    pending.render(answer).map_err(|e| status_of(&e))
}

pub(crate) fn unanswered() -> Error {
    Error::internal("the request was dropped without a response")
}

impl Pending {
    pub fn model(&self) -> &ServedModel {
        &self.model
    }

    /// Whether a decoupled model's end without a response is sent as an empty one.
    pub fn wants_empty_final(&self) -> bool {
        self.plan.wants_empty_final()
    }

    /// The message of a response, as the client asked for it and not longer than can be sent.
    pub fn render(&self, answer: Result<InferResponse>) -> Result<ModelInferResponse> {
        let label = |output: &str, class| self.model.label(output, class);
        let message = encode(answer?, &self.plan, label)?;
        check_message_size(&message, self.max_response_size)?;
        Ok(message)
    }
}
