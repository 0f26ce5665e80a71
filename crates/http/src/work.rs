//! Decoding of requests and rendering of responses, on the connection's thread or, where they are long, on one for
//! long requests.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_engine::ServedModel;
use galatea_frontend::HeavyWork;
use galatea_protocol::{
    AnswerPlan, NoRegions, Regions,
    http::{EncodedResponse, decode_generate, encode},
};
use galatea_types::{
    Buffer, DataType, Error, InferRequest, InferResponse, MemoryReservation, OverBudget, Result,
};

use crate::state::ServerState;

/// Decoded requests up to this size are not counted to the budget: the number of connections bounds those.
const UNCOUNTED: usize = 4 << 10;

/// Numbers of four bytes that are written as a digit and a comma grow so much.
const DECODED_GROWTH: usize = 2;

/// The body of an inference request, and where its JSON ends, if not at the end.
pub(crate) struct InferBody {
    pub content: Bytes,
    pub header_length: Option<usize>,
}

impl InferBody {
    fn json_length(&self) -> usize {
        self.header_length.unwrap_or(self.content.len()).min(self.content.len())
    }

    /// How much of it has to be read or copied to decode it: the JSON, or all of a raw body that becomes one string.
    fn bytes_to_decode(&self, model: &ModelConfig) -> usize {
        let becomes_string = || model.inputs().iter().any(|i| i.data_type == DataType::Bytes);
        match self.json_length() {
            0 if becomes_string() => self.content.len(),
            length => length,
        }
    }
}

/// Decodes the body of an inference request with `decode`, one of the functions for that. `memory`, which holds the body, holds afterwards what is left of it and
/// what was made of it.
pub(crate) async fn decode_infer<D>(
    state: &ServerState,
    (model, version): (&Arc<ServedModel>, Option<i64>),
    body: InferBody,
    memory: &mut MemoryReservation,
    decode: D,
) -> Result<(InferRequest, AnswerPlan)>
where
    D: FnOnce(
            &Bytes,
            usize,
            &ModelConfig,
            Option<i64>,
            &dyn Regions,
        ) -> Result<(InferRequest, AnswerPlan)>
        + Send
        + 'static,
{
    let size = body.bytes_to_decode(model.config());
    let binary = body.content.len() - body.json_length();
    let has_json = body.json_length() > 0;
    let place = address_range(&body.content);
    let held = reserve_decoding(size, memory)?;
    let model = model.clone();
    let work = move || {
        let header_length = body.header_length.unwrap_or(body.content.len());
        decode(&body.content, header_length, model.config(), version, &NoRegions)
    };
    let decoded = state.options.heavy_work.run_sized(size, work).await??;
    if has_json {
        check_decoded(&decoded.0, state.options.max_input_size, place)?;
    }
    count_decoded(&decoded.0, if binary > 0 { held } else { 0 }, binary, memory)?;
    Ok(decoded)
}

/// As [`decode_infer`], for the body of a generate request.
pub(crate) async fn decode_flat(
    state: &ServerState,
    (model, version): (&Arc<ServedModel>, Option<i64>),
    body: Bytes,
    memory: &mut MemoryReservation,
) -> Result<InferRequest> {
    let model = model.clone();
    let size = body.len();
    reserve_decoding(size, memory)?;
    let work = move || decode_generate(&body, model.config(), version);
    let request = state.options.heavy_work.run_sized(size, work).await??;
    check_decoded(&request, state.options.max_input_size, 0..0)?;
    count_decoded(&request, 0, 0, memory)?;
    Ok(request)
}

/// Where bytes lie.
fn address_range(bytes: &[u8]) -> Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// Refuses a tensor that has become longer than its text may be. Those that lie in the `body` have none.
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

/// Asks for what a long body is likely to become before it does. Returns what `memory` held before.
fn reserve_decoding(size: usize, memory: &mut MemoryReservation) -> Result<usize, OverBudget> {
    let held = memory.bytes();
    if HeavyWork::is_heavy(size) {
        memory.try_grow(size.saturating_mul(DECODED_GROWTH))?;
    }
    Ok(held)
}

/// Counts what was made of a body, besides the `kept` bytes of it that stay. Of the tensors, `binary` bytes are its own.
fn count_decoded(
    request: &InferRequest,
    kept: usize,
    binary: usize,
    memory: &mut MemoryReservation,
) -> Result<(), OverBudget> {
    let total: usize = request.inputs.iter().map(|tensor| tensor.data.len()).sum();
    let made = Some(total.saturating_sub(binary)).filter(|&made| made > UNCOUNTED);
    let all = kept + made.unwrap_or(0);
    match all.checked_sub(memory.bytes()) {
        Some(more) => memory.try_grow(more)?,
        None => memory.shrink_to(all),
    }
    Ok(())
}

/// Writes a response in the form that was asked for. Refused where the budget has no room for a long text.
pub(crate) async fn render(
    state: &ServerState,
    model: &Arc<ServedModel>,
    response: InferResponse,
    plan: AnswerPlan,
) -> Result<EncodedResponse> {
    let size = plan.bytes_to_render(&response);
    let mut memory = state.options.memory.reservation();
    if HeavyWork::is_heavy(size) {
        // The request has ended, and with it what counted its tensors, which an output may share.
        memory.grow(response.byte_size());
        memory.try_grow(plan.bytes_of_texts(&response))?;
    }
    let model = model.clone();
    let work = move || encode(response, &plan, |output, class| model.label(output, class));
    state.options.heavy_work.run_sized(size, work).await?
}
