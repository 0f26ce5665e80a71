//! The model `iterative_sequence`: one request, executed once for each of its responses.

use std::{thread, time::Duration};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance, PendingRequest, TakenRequest};
use galatea_types::{DataType, Result, Shape, Tensor};

use crate::{
    accumulate::number, expected_config::check_decoupled, model::model, parameter::whole_number,
    stream::cancelled,
};

/// Delay without a parameter.
const DELAY: Duration = Duration::from_millis(500);

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    let delay = match config.parameters().get("execute_delay_ms") {
        Some(_) => Duration::from_millis(whole_number(config, "execute_delay_ms")?),
        None => DELAY,
    };
    check_decoupled(config)?;
    let has_batching = config.has_batching();
    model(move |_| Ok(IterativeSequenceInstance { has_batching, delay }))
}

/// Sends as many responses as `INPUT` (INT32, one element) says, one with each execution of the request. `OUTPUT` is the
/// number of responses left. After each but the last it asks for another execution, which only a model with
/// `iterative_sequence: true` gets. The model must be decoupled.
///
/// Each execution takes half a second, or as many milliseconds as the model parameter `execute_delay_ms` says.
struct IterativeSequenceInstance {
    has_batching: bool,
    delay: Duration,
}

impl ModelInstance for IterativeSequenceInstance {
    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn execute(&mut self, batch: &mut Batch) {
        batch.mark_input_done();
        thread::sleep(self.delay);
        batch.mark_output_started();
        for index in 0..batch.len() {
            match batch.pending_at(index).map(left) {
                Some(Ok(left)) => self.respond(batch, index, left),
                Some(Err(error)) => batch.respond(index, Err(error)),
                None => {}
            }
        }
    }
}

/// Returns the number of responses that follow this one.
fn left(pending: &PendingRequest) -> Result<i32> {
    let sent = i32::try_from(pending.responses).unwrap_or(i32::MAX);
    Ok(number(&pending.request, "INPUT")?.saturating_sub(sent).saturating_sub(1))
}

impl IterativeSequenceInstance {
    fn respond(&self, batch: &mut Batch, index: usize, left: i32) {
        let Some(TakenRequest { request, mut responder }) = batch.take(index) else { return };
        if responder.is_cancelled() {
            return responder.finish(Some(Err(cancelled())));
        }
        let outputs = self.output(left);
        if left <= 0 {
            return responder.finish(Some(Ok((outputs, Vec::new()))));
        }
        responder.send(Ok((outputs, Vec::new())));
        batch.put_back(index, TakenRequest { request, responder });
    }

    fn output(&self, left: i32) -> Vec<Tensor> {
        let shape = if self.has_batching { Shape::from([1, 1]) } else { Shape::from([1]) };
        vec![Tensor::new("OUTPUT", DataType::Int32, shape, left.to_le_bytes().to_vec())]
    }
}
