//! The model `dyna_sequence`: sums over the requests of a sequence, kept by correlation id.

use std::{
    collections::{HashMap, HashSet},
    thread,
    time::Duration,
};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance};
use galatea_config::{ControlKind, FieldPath, SequenceControl};
use galatea_types::{DataType, Error, InferRequest, Result, Tensor, byte_strings};

use crate::{
    accumulate::{answer, check_controls, check_single, check_vectors, flag, sum, unfit},
    content::input,
    model::model,
    parameter::whole_number,
};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    let text = "'START', 'END, 'READY' and 'CORRID' must be configured as the control inputs";
    check_ids(check_controls(config, &["START", "END", "READY", "CORRID"], text)?)?;
    check_vectors(config)?;
    let delay = Duration::from_millis(whole_number(config, "execute_delay_ms")?);
    model(move |_| Ok(DynaSequenceInstance { sums: HashMap::new(), delay }))
}

fn check_ids(controls: &[SequenceControl]) -> Result<()> {
    let is_unfit = |control: &SequenceControl| {
        let fits = [DataType::Uint64, DataType::Bytes].map(ControlKind::CorrelationId);
        &*control.input == "CORRID" && !fits.contains(&control.kind)
    };
    if !controls.iter().any(is_unfit) {
        return Ok(());
    }
    let field = FieldPath::from("sequence_batching").field("control_input").named("CORRID");
    let text = "model CORRID control input must have TYPE_UINT64 or TYPE_STRING data-type";
    let advice = "write `control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }`";
    Err(unfit(text, field, advice))
}

/// Adds up all elements of `INPUT` (INT32, one dimension) over a sequence. `OUTPUT`, of the same shape, has the current sum
/// in each element. `START` resets the sum; `END` adds the correlation id and drops the sum; a row that is not `READY`
/// changes nothing. `CORRID` (UINT64, or a number as a text) identifies the sum.
///
/// The model parameter `execute_delay_ms`, a whole number, delays each execution.
struct DynaSequenceInstance {
    sums: HashMap<u64, i32>,
    delay: Duration,
}

impl ModelInstance for DynaSequenceInstance {
    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn execute(&mut self, batch: &mut Batch) {
        thread::sleep(self.delay);
        batch.mark_input_done();
        let mut seen = HashSet::new();
        for index in 0..batch.len() {
            let Some(request) = batch.request(index) else { continue };
            let result = check_single(request.batch_size());
            let result = result.and_then(|()| self.step(request, &mut seen));
            batch.respond(index, result);
        }
        batch.mark_output_started();
    }
}

impl DynaSequenceInstance {
    /// Executes one step. `seen`: the sequences that this execution has had so far.
    fn step(&mut self, request: &InferRequest, seen: &mut HashSet<u64>) -> Result<Vec<Tensor>> {
        if !flag(request, "READY")? {
            return Ok(Vec::new());
        }
        let id = correlation_id(request)?;
        if !seen.insert(id) {
            return Err(Error::unsupported(
                "Execute() called with batch containing multiple inferences requests for the same Correlation ID",
            ));
        }
        let is_start = flag(request, "START")?;
        let before = self.sums.remove(&id).filter(|_| !is_start).unwrap_or(0);
        let total = before.wrapping_add(sum(request)?);
        if flag(request, "END")? {
            return answer(request, total.wrapping_add(low_word(id)));
        }
        self.sums.insert(id, total);
        answer(request, total)
    }
}

/// Returns the low bits that fit.
fn low_word(id: u64) -> i32 {
    let [a, b, c, d, ..] = id.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

fn correlation_id(request: &InferRequest) -> Result<u64> {
    let input = input(request, "CORRID")?;
    let data = input.host()?;
    if input.data_type != DataType::Bytes {
        let id = data.as_chunks().0.first().copied().map(u64::from_le_bytes);
        return id.ok_or_else(|| Error::invalid_arg("input 'CORRID' is empty"));
    }
    let text = byte_strings::elements(data).next().and_then(Result::ok).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    text.parse().map_err(|_| {
        Error::invalid_arg(format!("correlation id '{text}' is not a number, as this model needs"))
    })
}
