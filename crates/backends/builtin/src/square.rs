//! The model `square`: decoupled, with as many responses as its input asks for.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance, ResponseSender, TakenRequest};
use galatea_config::ModelConfig;
use galatea_telemetry::{ResponseOutcome, ResponseRecord};
use galatea_types::{Buffer, DataType, Error, InferRequest, Result, Shape, Stop, Tensor};

use crate::{
    content::input,
    expected_config::{check_decoupled, check_tensors},
    model::model,
    stream::{OpenStreams, cancelled, pause, words},
};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    let config = &context.config;
    check_decoupled(config)?;
    check_tensors("input", config.inputs(), &[("IN", DataType::Int32, true)])?;
    check_tensors("output", config.outputs(), &[("OUT", DataType::Int32, true)])?;
    let parameters = Arc::new(Parameters::from_config(config));
    model(move |_| {
        Ok(SquareInstance { parameters: parameters.clone(), streams: OpenStreams::default() })
    })
}

/// Sends as many responses as `IN` (INT32, one element) says, each with that number as `OUT`. Then the stream ends without
/// another response.
///
/// Model parameters, whole numbers of nanoseconds or responses; other values count as 0: `CUSTOM_INFER_DELAY_NS` before each
/// response, `CUSTOM_OUTPUT_DELAY_NS` more before each that has a body, `CUSTOM_CANCEL_DELAY_NS` before a cancelled request
/// ends. The last `CUSTOM_EMPTY_COUNT` responses are omitted, the last `CUSTOM_FAIL_COUNT` before them are errors.
struct SquareInstance {
    parameters: Arc<Parameters>,
    streams: OpenStreams,
}

impl ModelInstance for SquareInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batch.mark_input_done();
        for index in 0..batch.len() {
            match batch.request(index).map(|request| Square::from_request(request)) {
                Some(Ok(square)) => {
                    let parameters = self.parameters.clone();
                    if let Some(TakenRequest { responder, .. }) = batch.take(index) {
                        let run = move |sender, stop: &Stop| square.run(&parameters, sender, stop);
                        self.streams.open(responder, run);
                    }
                }
                Some(Err(error)) => batch.respond(index, Err(error)),
                None => {}
            }
        }
    }
}

struct Parameters {
    infer_delay: Duration,
    output_delay: Duration,
    cancel_delay: Duration,
    fail_count: u64,
    empty_count: u64,
}

impl Parameters {
    fn from_config(config: &ModelConfig) -> Self {
        let number = |name: &str| -> u64 {
            config.parameters().get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let delay = |name: &str| Duration::from_nanos(number(name));
        Self {
            infer_delay: delay("CUSTOM_INFER_DELAY_NS"),
            output_delay: delay("CUSTOM_OUTPUT_DELAY_NS"),
            cancel_delay: delay("CUSTOM_CANCEL_DELAY_NS"),
            fail_count: number("CUSTOM_FAIL_COUNT"),
            empty_count: number("CUSTOM_EMPTY_COUNT"),
        }
    }

    fn outcome(&self, index: u64, count: u64) -> ResponseOutcome {
        let left = count - index;
        if left <= self.empty_count {
            ResponseOutcome::Empty
        } else if left <= self.empty_count.saturating_add(self.fail_count) {
            ResponseOutcome::Failure
        } else {
            ResponseOutcome::Success
        }
    }
}

struct Square {
    number: i32,
    shape: Shape,
}

impl Square {
    fn from_request(request: &InferRequest) -> Result<Self> {
        let input = input(request, "IN")?;
        match words(input.host()?).next() {
            Some(number) if input.shape.element_count() == Some(1) => {
                Ok(Self { number: i32::from_le_bytes(number), shape: input.shape.clone() })
            }
            _ => Err(Error::invalid_arg("unexpected shape for IN input")),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn run(self, parameters: &Parameters, mut sender: ResponseSender, stop: &Stop) {
        let count = u64::try_from(self.number).unwrap_or(0);
        for index in 0..count {
            let begun = Instant::now();
            let outcome = parameters.outcome(index, count);
            let infer = pause(stop, parameters.infer_delay, &sender).then(|| begun.elapsed());
            let output = infer.and_then(|infer| match outcome {
                ResponseOutcome::Empty => Some((infer, Duration::ZERO)),
                _ => {
                    let goes_on = pause(stop, parameters.output_delay, &sender);
                    goes_on.then(|| (infer, begun.elapsed().saturating_sub(infer)))
                }
            });
            let Some((compute_infer, compute_output)) = output else {
                return end_early(parameters, begun, sender, stop);
            };
            sender.report(&ResponseRecord { outcome, compute_infer, compute_output });
            if outcome != ResponseOutcome::Empty {
                sender.send(self.response(outcome));
            }
        }
        sender.finish(None);
    }

    fn response(
        &self,
        outcome: ResponseOutcome,
    ) -> Result<(Vec<Tensor>, galatea_types::Parameters)> {
        if outcome == ResponseOutcome::Failure {
            return Err(Error::unknown("simulated failure"));
        }
        let data = Buffer::from(self.number.to_le_bytes().to_vec());
        let output = Tensor::new("OUT", DataType::Int32, self.shape.clone(), data);
        Ok((vec![output], Vec::new()))
    }
}

/// Ends a stream early. `begun`: start of the response that is not sent any more.
#[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
fn end_early(parameters: &Parameters, begun: Instant, mut sender: ResponseSender, stop: &Stop) {
    // An instance that shuts down drops the sender, which reports an abandoned request.
    if !stop.wait(parameters.cancel_delay) && sender.is_cancelled() {
        let (compute_infer, compute_output) = (begun.elapsed(), Duration::ZERO);
        let outcome = ResponseOutcome::Cancelled;
        sender.report(&ResponseRecord { outcome, compute_infer, compute_output });
        sender.finish(Some(Err(cancelled())));
    }
}
