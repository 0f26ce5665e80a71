//! The model `implicit_state`: uses of the states that the server keeps for a model, one case for each request.

use std::collections::HashMap;

use galatea_backend::{Batch, LoadContext, Model, ModelInstance};
use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{Buffer, DataType, Error, InferRequest, Result, Shape, Tensor};

use crate::{
    accumulate::{check_controls, flag, number},
    content::input,
    model::model,
    stream::words,
};

/// Bytes by which a growing state grows.
const BLOCK: usize = 1 << 20;

/// Most blocks of a growing state.
const MAX_BLOCKS: usize = 64;

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let text = "'START', 'END, and 'READY' must be configured as the control inputs";
    check_controls(&context.config, &["START", "END", "READY"], text)?;
    let shares_buffer = shares_buffer(&context.config);
    model(move |_| Ok(ImplicitStateInstance { shares_buffer, rows: HashMap::new() }))
}

fn shares_buffer(config: &ModelConfig) -> bool {
    let Scheduling::Sequence(batching) = config.scheduling() else { return false };
    batching.states.iter().any(|state| state.uses_same_buffer)
}

/// Each request selects in `TEST_CASE` (INT32) the use of the state `INPUT_STATE`, `OUTPUT_STATE`:
///
/// - 0: the model sets a state that it does not have, which is refused.
/// - 1: `OUTPUT` is the sum of `INPUT` (INT32) and the state. The model sets no new state, so it stays the same.
/// - 2: the model returns the state unchanged, without a copy if `use_same_buffer_for_input_output` is set. In that case it
///   checks that the next step gets the same memory. There is no output.
/// - 3: the state (INT8) grows by 1 MiB with each step, up to 64 MiB; all bytes of a block are the number of its step. It is
///   also the output `OUTPUT_STATE`.
struct ImplicitStateInstance {
    shares_buffer: bool,
    rows: HashMap<usize, Row>,
}

/// Data from earlier steps of the sequence in a row of the batch.
#[derive(Default)]
struct Row {
    steps: u8,
    /// Address of the state that the last step set.
    address: Option<usize>,
}

impl ModelInstance for ImplicitStateInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batch.mark_input_done();
        for index in 0..batch.len() {
            let result = self.step(batch, index);
            batch.respond(index, result);
        }
        batch.mark_output_started();
    }
}

impl ImplicitStateInstance {
    fn step(&mut self, batch: &mut Batch, index: usize) -> Result<Vec<Tensor>> {
        let Some(request) = batch.request(index) else { return Ok(Vec::new()) };
        if !flag(request, "READY")? {
            return Ok(Vec::new());
        }
        let (is_start, is_end) = (flag(request, "START")?, flag(request, "END")?);
        let case = number(request, "TEST_CASE")?;
        let row = self.rows.entry(index).or_default();
        if is_start {
            *row = Row::default();
        }
        let result = match case {
            0 => unknown_state(batch, index),
            1 => not_updated(request),
            2 => row.shared(batch, index, self.shares_buffer),
            3 => row.grown(request),
            _ => Ok(Vec::new()),
        };
        row.steps = row.steps.saturating_add(1);
        if is_end {
            self.rows.remove(&index);
        }
        result
    }
}

fn unknown_state(batch: &mut Batch, index: usize) -> Result<Vec<Tensor>> {
    let state = Tensor::new("undefined_state", DataType::Int32, Shape::from([0]), Vec::new());
    set_state(batch, index, state)
}

/// Sets a state, and returns no other output.
fn set_state(batch: &mut Batch, index: usize, state: Tensor) -> Result<Vec<Tensor>> {
    batch.pending_at_mut(index).map_or(Ok(()), |pending| pending.set_state(state))?;
    Ok(Vec::new())
}

fn not_updated(request: &InferRequest) -> Result<Vec<Tensor>> {
    let state = words(input(request, "INPUT_STATE")?.host()?).next().unwrap_or_default();
    let sum = number(request, "INPUT")?.wrapping_add(i32::from_le_bytes(state));
    if !request.wants_output("OUTPUT") {
        return Ok(Vec::new());
    }
    let shape = input(request, "INPUT")?.shape.clone();
    Ok(vec![Tensor::new("OUTPUT", DataType::Int32, shape, sum.to_le_bytes().to_vec())])
}

impl Row {
    fn shared(&mut self, batch: &mut Batch, index: usize, shares: bool) -> Result<Vec<Tensor>> {
        let Some(request) = batch.request(index) else { return Ok(Vec::new()) };
        let state = input(request, "INPUT_STATE")?;
        if self.address.is_some_and(|address| address != address_of(state).unwrap_or_default()) {
            return Err(Error::unsupported("Input and output state are using different buffers."));
        }
        let given = match shares {
            true => state.data.clone(),
            false => Buffer::from(state.host()?.to_vec()),
        };
        let given = Tensor { name: "OUTPUT_STATE".into(), data: given, ..state.clone() };
        self.address = Some(address_of(&given)?);
        match shares {
            true => set_state(batch, index, given),
            false => Ok(Vec::new()),
        }
    }

    fn grown(&self, request: &InferRequest) -> Result<Vec<Tensor>> {
        let steps = usize::from(self.steps);
        let state = input(request, "INPUT_STATE")?;
        if steps >= MAX_BLOCKS {
            let text = format!("the state has grown to {MAX_BLOCKS} MiB: begin another sequence");
            return Err(Error::unsupported(text));
        }
        let kept = state.host()?.get(..steps * BLOCK).ok_or_else(|| {
            Error::unsupported("the state has not grown as the step before has left it")
        })?;
        let mut data = Vec::with_capacity((steps + 1) * BLOCK);
        data.extend_from_slice(kept);
        data.resize((steps + 1) * BLOCK, self.steps);
        let size = i64::try_from(data.len()).unwrap_or_default();
        Ok(vec![Tensor::new("OUTPUT_STATE", DataType::Int8, Shape::from([size]), data)])
    }
}

fn address_of(tensor: &Tensor) -> Result<usize> {
    Ok(tensor.host()?.as_ptr().addr())
}
