//! Decodes requests and encodes responses, on the connection's thread or, if they are long, on a thread for long
//! requests.

use std::ops::Range;

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_engine::call::{DecodeFor, DecodedCall, FoundModel, RunningCall};
use galatea_frontend::HeavyWork;
use galatea_protocol::{
    AnswerPlan,
    http::{EncodedResponse, decode_generate, encode},
};
use galatea_types::{
    Buffer, DataType, Error, InferRequest, InferResponse, OverBudget, Result, UnreadRequest,
};

use crate::{request::received_request::ReceivedRequest, state::ServerState};

/// Decoded requests up to this size in bytes do not count to the budget: the number of connections bounds them.
const UNCOUNTED: usize = 4 << 10;

/// The growth of four-byte numbers that are each written as a digit and a comma.
const DECODED_GROWTH: usize = 2;

/// The body of an inference request, and the length of its JSON if that is not all of it.
pub(crate) struct InferBody {
    pub content: Bytes,
    pub header_length: Option<usize>,
}

impl InferBody {
    /// Returns the length of the JSON, as its sender states it.
    pub fn header_end(&self) -> usize {
        self.header_length.unwrap_or(self.content.len())
    }

    fn json_length(&self) -> usize {
        self.header_end().min(self.content.len())
    }

    /// Returns the bytes that decoding reads or copies: the JSON, or a whole raw body that becomes one string.
    fn bytes_to_decode(&self, model: &ModelConfig) -> usize {
        let becomes_string = || model.inputs().iter().any(|i| i.data_type == DataType::Bytes);
        match self.json_length() {
            0 if becomes_string() => self.content.len(),
            length => length,
        }
    }
}

/// Admits an inference request for `found` and decodes its body with `decode`. The memory of the call counts the body
/// first, and afterwards the rest of it and the tensors made from it.
pub(crate) async fn decode_infer(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    found: FoundModel,
    body: InferBody,
    decode: impl FnOnce(&InferBody, &DecodeFor<'_>) -> Result<(UnreadRequest, AnswerPlan)>
    + Send
    + 'static,
) -> Result<DecodedCall<AnswerPlan>> {
    let size = body.bytes_to_decode(found.config());
    let binary = body.content.len() - body.json_length();
    let has_json = body.json_length() > 0;
    if !has_json {
        check_raw(body.content.len(), state.options.max_input_size)?;
    }
    let place = address_range(&body.content);
    let kept = if binary > 0 { received.memory.bytes() } else { 0 };
    let call = received.admit(found, decoding_size(size))?;
    let work = move || call.decode(|to| decode(&body, to));
    let mut decoded = state.options.heavy_work.run_sized(size, work).await??;
    if has_json {
        check_decoded(decoded.request(), state.options.max_input_size, place)?;
    }
    count_decoded(&mut decoded, kept, binary)?;
    match decoded.unread_bytes() {
        0 => Ok(decoded),
        bytes => read_regions(state, received, decoded, bytes).await,
    }
}

/// Reads the inputs in shared memory. They count to the limits of their client and, as they are read, to the memory budget.
/// They are no part of the body, which `--http-max-input-size` limits.
async fn read_regions(
    state: &ServerState,
    received: &ReceivedRequest<'_>,
    mut decoded: DecodedCall<AnswerPlan>,
    bytes: usize,
) -> Result<DecodedCall<AnswerPlan>> {
    if let (Some(account), Some(share)) = (received.sender.caller.account(), decoded.share()) {
        account.grow(share, bytes)?;
    }
    if !HeavyWork::is_heavy(HeavyWork::weight_of_copy(decoded.reading_work())) {
        return decoded.read_regions();
    }
    state.options.heavy_work.run(move || decoded.read_regions()).await?
}

/// Like [`decode_infer`], for the body of a generate request.
pub(crate) async fn decode_flat(
    state: &ServerState,
    received: &mut ReceivedRequest<'_>,
    found: FoundModel,
    body: Bytes,
) -> Result<DecodedCall<()>> {
    let size = body.len();
    let call = received.admit(found, decoding_size(size))?;
    let work = move || {
        call.decode(|to| decode_generate(&body, to.config, to.version).map(|request| (request, ())))
    };
    let mut decoded = state.options.heavy_work.run_sized(size, work).await??;
    check_decoded(decoded.request(), state.options.max_input_size, 0..0)?;
    count_decoded(&mut decoded, 0, 0)?;
    Ok(decoded)
}

fn address_range(bytes: &[u8]) -> Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// Refuses a decoded tensor that is longer than `limit`. Tensors within the `body` were not decoded.
fn check_decoded(request: &InferRequest, limit: usize, body: Range<usize>) -> Result<()> {
    let is_decoded =
        |data: &Buffer| data.host().is_ok_and(|bytes| !body.contains(&bytes.as_ptr().addr()));
    let too_long =
        request.inputs.iter().find(|input| input.data.len() > limit && is_decoded(&input.data));
    match too_long {
        None => Ok(()),
        Some(input) => Err(Error::invalid_arg(format!(
            "input '{}' of {} bytes exceeds the maximum allowed input size of {limit} bytes. Use --http-max-input-size to \
             increase the limit.",
            input.name,
            input.data.len()
        ))),
    }
}

/// Refuses a body that is one tensor and longer than a tensor may be.
fn check_raw(size: usize, limit: usize) -> Result<()> {
    match size <= limit {
        true => Ok(()),
        false => Err(Error::invalid_arg(format!(
            "Raw input has a byte_size {size} which exceeds the maximum allowed input size of {limit} bytes. Use \
             --http-max-input-size to increase the limit."
        ))),
    }
}

/// Returns the likely size of a decoded body. The budget is asked for it before a long body is decoded.
fn decoding_size(size: usize) -> usize {
    if HeavyWork::is_heavy(size) { size.saturating_mul(DECODED_GROWTH) } else { 0 }
}

/// Counts the result of decoding, besides the `kept` bytes of the body. `binary` bytes of the tensors are part of the body.
fn count_decoded<P>(
    decoded: &mut DecodedCall<P>,
    kept: usize,
    binary: usize,
) -> Result<(), OverBudget> {
    let total: usize = decoded.request().inputs.iter().map(|tensor| tensor.data.len()).sum();
    let made = Some(total.saturating_sub(binary)).filter(|&made| made > UNCOUNTED);
    let all = kept + made.unwrap_or(0);
    let memory = decoded.memory();
    match all.checked_sub(memory.bytes()) {
        Some(more) => memory.try_grow(more)?,
        None => memory.shrink_to(all),
    }
    Ok(())
}

/// Encodes a response in the form that the client asked for. Fails if the budget has no room for a long text.
pub(crate) async fn render(
    state: &ServerState,
    running: RunningCall<AnswerPlan>,
    response: InferResponse,
) -> Result<EncodedResponse> {
    let plan = running.plan();
    let copied = HeavyWork::weight_of_copy(plan.copying_work(&response));
    let size = plan.bytes_to_render(&response).saturating_add(copied);
    let mut memory = state.options.memory.reservation();
    if HeavyWork::is_heavy(size) {
        // The request, which counted its tensors, has ended, and an output may share them.
        memory.grow(response.byte_size());
        memory.try_grow(running.plan().bytes_of_texts(&response))?;
    }
    let work = move || {
        let label = |output: &str, class| running.model().label(output, class);
        encode(response, running.plan(), label)
    };
    state.options.heavy_work.run_sized(size, work).await?
}
