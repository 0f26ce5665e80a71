//! The model `sequence`: sums over the requests of a sequence, kept by the row of the batch.

use std::{thread, time::Duration};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance};
use galatea_types::{Error, InferRequest, Result, Tensor};

use crate::{
    accumulate::{answer, check_controls, check_single, check_vectors, flag, sum},
    model::model,
    parameter::whole_number,
};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    let text = "'START' and 'READY' must be configured as the control inputs";
    check_controls(config, &["START", "READY"], text)?;
    check_vectors(config)?;
    let rows = config.max_batch_size().max(1) as usize;
    let delay = Duration::from_millis(whole_number(config, "execute_delay_ms")?);
    model(move |_| Ok(SequenceInstance { sums: vec![0; rows], delay }))
}

/// Adds up all elements of `INPUT` (INT32, one dimension) over a sequence. `OUTPUT`, of the same shape, has the current sum
/// in each element. `START` resets the sum; a row that is not `READY` changes nothing. The row identifies the sum: with the
/// direct strategy a sequence has a row of its own.
///
/// The model parameter `execute_delay_ms`, a whole number, delays each execution.
struct SequenceInstance {
    sums: Vec<i32>,
    delay: Duration,
}

impl ModelInstance for SequenceInstance {
    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn execute(&mut self, batch: &mut Batch) {
        if batch.len() > self.sums.len() {
            let text = "unable to execute batch larger than max-batch-size";
            return batch.fail_all(&Error::unsupported(text));
        }
        thread::sleep(self.delay);
        batch.mark_input_done();
        for (index, sum) in self.sums.iter_mut().enumerate() {
            let Some(request) = batch.request(index) else { continue };
            let result = check_single(request.batch_size()).and_then(|()| step(sum, request));
            batch.respond(index, result);
        }
        batch.mark_output_started();
    }
}

fn step(total: &mut i32, request: &InferRequest) -> Result<Vec<Tensor>> {
    if !flag(request, "READY")? {
        return Ok(Vec::new());
    }
    let before = if flag(request, "START")? { 0 } else { *total };
    *total = before.wrapping_add(sum(request)?);
    answer(request, *total)
}
