//! An inference: from a message to the request, from the response to a message.

use std::sync::Arc;

use bytes::Bytes;
use galatea_engine::{Engine, ServedModel};
use galatea_frontend::{Action, Caller, CancelOnDrop, Exchange, HeavyWork, Subject};
use galatea_proto::inference::ModelInferResponse;
use galatea_protocol::{
    AnswerForm, AnswerPlan, NoRegions,
    grpc::{
        Pieces, RequestMessage, check_message_size, decode, decoding_work, encode, encode_response,
    },
    parse_model_version,
};
use galatea_types::{
    Error, InferRequest, InferResponse, MemoryReservation, OverBudget, Refused, RequestContext,
    Responder, Result,
};

use crate::{
    forwarded::Forwarded,
    message::{Message, prefix},
};

/// What a class takes while an output is ranked, about: its text, and its place among the others.
const CLASS_SIZE: usize = 64;

/// A request on its way, with what is needed to return its responses as the client asked.
///
/// Dropped before the final response is there (the client hung up, its deadline passed), it cancels the request.
pub(crate) struct Pending {
    model: Arc<ServedModel>,
    plan: AnswerPlan,
    max_response_size: usize,
    _cancel: CancelOnDrop,
}

/// A request that is to be handed to its model.
pub(crate) struct Prepared {
    pub request: InferRequest,
    pub context: RequestContext,
    pub pending: Pending,
}

/// A model that the client may not ask is refused before it is looked for: no answer tells whether it is there.
pub(crate) fn find_model(
    engine: &Engine,
    message: &RequestMessage,
    (caller, subject): (&Caller, &mut Subject),
) -> Result<Arc<ServedModel>> {
    let name = message.model_name();
    caller.check(&Action::Infer(name)).inspect_err(|_| subject.asks_for(name, None))?;
    let version = parse_model_version(message.model_version());
    let version = version.inspect_err(|_| subject.asks_for(name, None))?;
    let model = engine.model(name, version).inspect_err(|_| subject.asks_for(name, version))?;
    subject.is_about(model.config().name(), model.version());
    Ok(model)
}

/// Decodes a request for `model`. What that takes is asked of the budget first, and held beside the bytes of the message
/// until the request is answered.
pub(crate) fn prepare(
    model: Arc<ServedModel>,
    message: RequestMessage,
    mut memory: MemoryReservation,
    (forwarded, caller): (&Forwarded, &Caller),
    max_response_size: usize,
) -> Result<Prepared> {
    let share = caller.begin(message.decoded_size())?;
    memory.try_grow(message.decoded_size())?;
    let mut context = RequestContext::new();
    context.share = share;
    context.identity = caller.identity().cloned();
    context.memory = memory;
    let (mut request, plan) = decode(message, model.config(), &NoRegions)?;
    forwarded.add_to(&mut request)?;
    let _cancel = CancelOnDrop::new(context.cancellation.clone());
    Ok(Prepared { request, context, pending: Pending { model, plan, max_response_size, _cancel } })
}

/// The request of a message of ModelInfer. `subject`: what it is about, as far as it could be read.
pub(crate) fn prepare_unary(
    engine: &Engine,
    message: Message,
    (forwarded, caller): (&Forwarded, &Caller),
    (max_response_size, subject): (usize, &mut Subject),
) -> Result<Prepared> {
    let Message { bytes, memory } = message;
    let message = RequestMessage::read(bytes)?;
    subject.is_named(message.id());
    let model = find_model(engine, &message, (caller, subject))?;
    if model.config().is_decoupled() {
        // It may respond any number of times, and this call has one response.
        return Err(Error::unsupported(
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ));
    }
    prepare(model, message, memory, (forwarded, caller), max_response_size)
}

/// Whether reading the message would hold up the other clients of the thread.
pub(crate) fn is_heavy(message: &Pieces) -> bool {
    use bytes::Buf;
    HeavyWork::is_heavy(message.remaining()) && HeavyWork::is_heavy(decoding_work(message))
}

pub(crate) fn unanswered() -> Error {
    Error::internal("the request was dropped without a response")
}

impl Prepared {
    /// Hands the request to its model.
    pub fn submit(self, responder: Responder, exchange: &mut Exchange) -> Result<Pending> {
        let Self { request, mut context, pending } = self;
        exchange.is_read(&request, &mut context);
        exchange.is_submitted();
        pending.model.infer(request, context, responder).map_err(Refused::into_error)?;
        Ok(pending)
    }
}

impl Pending {
    pub fn model(&self) -> &ServedModel {
        &self.model
    }

    /// Whether a decoupled model's end without a response is sent as an empty one.
    pub fn wants_empty_final(&self) -> bool {
        self.plan.wants_empty_final()
    }

    /// Whether rendering the answer would hold up the other clients of the thread: its values are ranked or copied.
    pub fn is_heavy(&self, answer: &Result<InferResponse>) -> bool {
        let Ok(response) = answer else { return false };
        let outputs =
            response.outputs.iter().filter(|output| HeavyWork::is_heavy(output.data.len()));
        outputs.map(|output| self.plan.form_of(&output.name)).any(|form| match form {
            AnswerForm::Inline | AnswerForm::Binary => false,
            AnswerForm::Classes { .. } | AnswerForm::Region(_) => true,
        })
    }

    /// Counts an answer that waits to be rendered: the request has ended, and with it what counted its tensors, which an
    /// output may share. Refused where there is no room for what ranking takes.
    pub fn count_to(
        &self,
        memory: &mut MemoryReservation,
        answer: &Result<InferResponse>,
    ) -> Result<(), OverBudget> {
        memory.grow(answer.as_ref().map_or(0, InferResponse::byte_size));
        memory.try_grow(self.ranking_size(answer))
    }

    /// Bytes that ranking the values of the answer takes, about, its texts included.
    fn ranking_size(&self, answer: &Result<InferResponse>) -> usize {
        let Ok(response) = answer else { return 0 };
        let sizes = response.outputs.iter().map(|output| {
            let AnswerForm::Classes { count, .. } = self.plan.form_of(&output.name) else {
                return 0;
            };
            let batch = output.shape.first().filter(|_| self.plan.is_batched());
            let rows = batch.map_or(1, |&rows| usize::try_from(rows).unwrap_or(0));
            let most = usize::try_from(count.get()).unwrap_or(usize::MAX).saturating_mul(rows);
            let classes = most.min(output.shape.element_count().unwrap_or(0));
            classes.saturating_mul(CLASS_SIZE)
        });
        sizes.fold(0, usize::saturating_add)
    }

    /// The bytes of the message of a response, as the client asked for it and not longer than can be sent.
    pub fn render_pieces(
        &self,
        answer: Result<InferResponse>,
        is_framed: bool,
    ) -> Result<Vec<Bytes>> {
        let label = |output: &str, class| self.model.label(output, class);
        let (answer, limit) = (answer?, self.max_response_size);
        match is_framed {
            true => encode_response(answer, &self.plan, label, limit, prefix),
            false => encode_response(answer, &self.plan, label, limit, |_| []),
        }
    }

    /// The message of a response of a stream, the same.
    pub fn render(&self, answer: Result<InferResponse>) -> Result<ModelInferResponse> {
        let label = |output: &str, class| self.model.label(output, class);
        let message = encode(answer?, &self.plan, label)?;
        check_message_size(&message, self.max_response_size)?;
        Ok(message)
    }
}
