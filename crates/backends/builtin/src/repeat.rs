//! The model `repeat`: a response per element, if it is decoupled.

use std::{thread, time::Duration};

use galatea_backend::{Batch, LoadContext, Model, ModelInstance, ResponseSender, TakenRequest};
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Error, InferRequest, Result, Stop, Tensor};

use crate::{
    content::input,
    expected_config::check_tensors,
    model::model,
    stream::{OpenStreams, cancelled, pause, words},
};

pub(crate) fn load(context: &LoadContext) -> Result<Box<dyn Model>> {
    check(&context.config)?;
    let is_decoupled = context.config.is_decoupled();
    model(move |_| Ok(RepeatInstance { is_decoupled, streams: OpenStreams::default() }))
}

fn check(config: &ModelConfig) -> Result<()> {
    if config.has_batching() {
        return Err(Error::invalid_arg(
            "repeat backend only supports models with max_batch_size == 0",
        ));
    }
    let inputs = [
        ("IN", DataType::Int32, false),
        ("DELAY", DataType::Uint32, false),
        ("WAIT", DataType::Uint32, true),
    ];
    check_tensors("input", config.inputs(), &inputs)?;
    let outputs = [("OUT", DataType::Int32, true), ("IDX", DataType::Uint32, true)];
    check_tensors("output", config.outputs(), &outputs)
}

/// Sends a response for each element of `IN` (INT32), each after the milliseconds in the same element of `DELAY` (UINT32).
/// `OUT` is the element, `IDX` counts from 0. Then the stream ends without another response. The execution itself takes
/// `WAIT` (UINT32) milliseconds and may end long before.
///
/// A model that is not decoupled answers a request of one element; Triton's text refuses any other. Triton's backend of this
/// name does not answer that one, and does not end a cancelled request early.
struct RepeatInstance {
    is_decoupled: bool,
    streams: OpenStreams,
}

impl ModelInstance for RepeatInstance {
    #[expect(clippy::disallowed_methods, reason = "the model takes as long as it is told to")]
    fn execute(&mut self, batch: &mut Batch) {
        let mut longest = Duration::ZERO;
        batch.mark_input_done();
        for index in 0..batch.len() {
            match batch.request(index).map(|request| Repeat::from_request(request)) {
                Some(Ok(repeat)) => {
                    longest = longest.max(repeat.wait);
                    if let Some(TakenRequest { responder, .. }) = batch.take(index) {
                        let run = if self.is_decoupled { Repeat::run } else { Repeat::run_once };
                        self.streams.open(responder, move |sender, stop| run(repeat, sender, stop));
                    }
                }
                Some(Err(error)) => batch.respond(index, Err(error)),
                None => {}
            }
        }
        thread::sleep(longest);
    }
}

struct Repeat {
    elements: Vec<([u8; 4], Duration)>,
    wait: Duration,
    wants_element: bool,
    wants_index: bool,
}

impl Repeat {
    fn from_request(request: &InferRequest) -> Result<Self> {
        let (values, delays) = (input(request, "IN")?, input(request, "DELAY")?);
        if values.shape != delays.shape {
            return Err(Error::invalid_arg(format!(
                "expected IN and DELAY shape to match, got {} and {}",
                values.shape, delays.shape
            )));
        }
        let wait = words(input(request, "WAIT")?.host()?).next();
        let wait = wait.ok_or_else(|| Error::invalid_arg("unexpected size for WAIT input"))?;
        Ok(Self {
            elements: words(values.host()?).zip(words(delays.host()?).map(millis)).collect(),
            wait: millis(wait),
            wants_element: request.wants_output("OUT"),
            wants_index: request.wants_output("IDX"),
        })
    }

    fn run(self, mut sender: ResponseSender, stop: &Stop) {
        for (index, &(element, delay)) in (0_u32..).zip(&self.elements) {
            if !pause(stop, delay, &sender) {
                return end_early(sender);
            }
            sender.send(Ok((self.outputs(index, element), Vec::new())));
        }
        sender.finish(None);
    }

    /// Answers a request of a model with one response to each request.
    fn run_once(self, sender: ResponseSender, stop: &Stop) {
        let total = self.elements.iter().map(|&(_, delay)| delay).sum();
        if !pause(stop, total, &sender) {
            return end_early(sender);
        }
        let result = match *self.elements {
            [] => Err(Error::internal("received an unexpected null response")),
            [(element, _)] => Ok((self.outputs(0, element), Vec::new())),
            // Triton counts the end too.
            [_, .., _] => Err(Error::internal(format!(
                "expected a single response, got {}",
                self.elements.len() + 1
            ))),
        };
        sender.finish(Some(result));
    }

    fn outputs(&self, index: u32, element: [u8; 4]) -> Vec<Tensor> {
        let tensor = |name, data_type, bytes: [u8; 4]| {
            Tensor::new(name, data_type, [1], Buffer::from(bytes.to_vec()))
        };
        let out = self.wants_element.then(|| tensor("OUT", DataType::Int32, element));
        let idx = self.wants_index.then(|| tensor("IDX", DataType::Uint32, index.to_le_bytes()));
        out.into_iter().chain(idx).collect()
    }
}

/// Ends the request explicitly: a dropped sender would report an abandoned request.
fn end_early(sender: ResponseSender) {
    if sender.is_cancelled() {
        sender.finish(Some(Err(cancelled())));
    }
}

fn millis(word: [u8; 4]) -> Duration {
    Duration::from_millis(u32::from_le_bytes(word).into())
}
