//! An inference: decodes its request message and encodes its response message.

use std::time::Instant;

use bytes::{Buf as _, Bytes};
use galatea_engine::{
    Engine,
    call::{DecodedCall, FoundModel, RunningCall},
};
use galatea_frontend::{CompressionFormat, HeavyWork, Subject};
use galatea_protocol::{
    AnswerPlan,
    grpc::{Envelope, Pieces, RequestMessage, decode_unread, decoding_work, encode_response},
    parse_model_version,
};
use galatea_types::{InferResponse, MemoryReservation, OverBudget, Result};
use http::HeaderMap;

use crate::{
    compression,
    deadline::deadline_of,
    load_report,
    message::{Message, prefix},
    sender::Sender,
    state::ServerState,
};

#[derive(Clone, Copy)]
pub(crate) struct InferHead {
    pub deadline: Option<Instant>,
    /// The compression format of the responses.
    pub format: Option<CompressionFormat>,
    /// Is `true` if the trailers have a load report.
    pub has_report: bool,
}

impl InferHead {
    pub fn of(headers: &HeaderMap, state: &ServerState) -> Self {
        let level = state.options.response_compression;
        let format = compression::format_of_response(level, headers);
        let has_report = load_report::is_wanted(headers, state);
        Self { deadline: deadline_of(headers), format, has_report }
    }
}

pub(crate) type Decoded = DecodedCall<AnswerPlan>;
/// A submitted request, with the plan for the form of its responses.
pub(crate) type RunningRequest = RunningCall<AnswerPlan>;

pub(crate) fn find_model(
    engine: &Engine,
    message: &RequestMessage,
    sender: &Sender,
    subject: &mut Subject,
) -> Result<FoundModel> {
    let version = || parse_model_version(message.model_version());
    FoundModel::find(engine, message.model_name(), version, sender, subject)
}

/// Decodes a request for the found model. It first asks the budget for the memory, and holds that with the bytes of the
/// message until the request is answered.
pub(crate) fn decode_for(
    found: FoundModel,
    message: RequestMessage,
    memory: MemoryReservation,
    sender: &mut Sender,
) -> Result<Decoded> {
    let call = found.admit(sender, memory, message.decoded_size())?;
    let mut decoded = call.decode(|to| decode_unread(message, to.config, to.regions))?;
    decoded.forward_headers(sender)?;
    let in_regions = decoded.unread_bytes();
    if in_regions > 0
        && let (Some(account), Some(share)) = (sender.caller.account(), decoded.share())
    {
        account.grow(share, in_regions)?;
    }
    Ok(decoded)
}

/// Decodes the message of ModelInfer. `subject` receives the model, version and id, as far as they could be read.
pub(crate) fn decode_unary(
    engine: &Engine,
    message: Message,
    sender: &mut Sender,
    subject: &mut Subject,
) -> Result<Decoded> {
    let Message { bytes, memory } = message;
    let message = RequestMessage::read(bytes)?;
    subject.set_id(message.id());
    let found = find_model(engine, &message, sender, subject)?;
    found.check_responds_once(
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )?;
    decode_for(found, message, memory, sender)
}

/// Returns `true` if decoding the message would delay the other clients of the thread.
pub(crate) fn is_heavy(message: &Pieces) -> bool {
    HeavyWork::is_heavy(message.remaining()) && HeavyWork::is_heavy(decoding_work(message))
}

/// Returns `true` if reading the inputs in shared memory would delay the other clients of the thread.
pub(crate) fn is_heavy_to_read(decoded: &Result<Decoded>) -> bool {
    let work = decoded.as_ref().map_or(0, Decoded::reading_work);
    HeavyWork::is_heavy(HeavyWork::weight_of_copy(work))
}

/// Returns `true` if encoding the answer would delay the other clients of the thread, because values are ranked or copied.
pub(crate) fn is_heavy_answer(plan: &AnswerPlan, answer: &Result<InferResponse>) -> bool {
    let Ok(response) = answer else { return false };
    let copied = HeavyWork::weight_of_copy(plan.copying_work(response));
    HeavyWork::is_heavy(plan.bytes_to_render(response).saturating_add(copied))
}

/// Counts an answer that waits to be encoded. The request, which counted its tensors, has ended, and an output may
/// share them. Fails if the budget has no room for ranking.
pub(crate) fn count_answer(
    plan: &AnswerPlan,
    answer: &Result<InferResponse>,
    memory: &mut MemoryReservation,
) -> Result<(), OverBudget> {
    let Ok(response) = answer else { return Ok(()) };
    memory.grow(response.byte_size());
    memory.try_grow(plan.bytes_of_texts(response))
}

#[derive(Clone, Copy)]
pub(crate) struct MessageForm {
    /// The longest response in bytes that a client may be sent.
    pub limit: usize,
    /// Is `true` if the message gets its prefix here; compression writes its own.
    pub is_framed: bool,
}

impl MessageForm {
    /// Encodes a response, in the form that the client asked for, into the bytes of its message.
    pub fn render(
        self,
        running: &RunningRequest,
        answer: Result<InferResponse>,
        envelope: Envelope,
    ) -> Result<Vec<Bytes>> {
        let (answer, plan) = (answer?, running.plan());
        let label = |output: &str, class| running.model().label(output, class);
        match self.is_framed {
            true => encode_response(answer, plan, label, self.limit, envelope, prefix),
            false => encode_response(answer, plan, label, self.limit, envelope, |_| []),
        }
    }
}
