//! Executes a batch: groups, inputs, the run, outputs, responses, times and errors.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_division_faults::DivisionFault;
use galatea_types::{DeviceAllocator, Error, Result};

use super::{
    generated_input::generate,
    join::{JoinedInput, join, missing, tensors_of},
    model_output::ModelOutput,
    padding::PaddedGroup,
    split::{Division, SplitOutput, respond},
};
use crate::{Batch, ModelInstance};

/// Runs a group of requests that are joined along the first dimension, in three stages, so that the time of each
/// is counted separately.
pub trait GroupRunner {
    /// The inputs in the form of the model's library.
    type Inputs;
    /// The outputs in the form of the model's library.
    type Outputs;

    /// Returns the configuration of the model. The methods below number its `execution_inputs` and `model_outputs` from 0.
    fn config(&self) -> &ModelConfig;

    /// Returns true if the model declares this input without dimensions, for which clients send `[1]`.
    fn is_scalar(&self, input: usize) -> bool {
        let _ = input;
        false
    }

    /// Returns the allocator of the device memory in which the model takes inputs, if it is not the host's: see
    /// [`LoadContext::devices`](crate::LoadContext::devices). Inputs with elements of a fixed size are joined there.
    fn device(&self) -> Option<&dyn DeviceAllocator> {
        None
    }

    /// Prepares the inputs: one for each of `execution_inputs`, `None` for an optional one that no request has.
    /// `wanted` are the outputs that some request wants. If this fails for several requests, each is run alone.
    fn prepare(
        &self,
        joined: Vec<Option<JoinedInput<'_>>>,
        wanted: &[usize],
    ) -> Result<Self::Inputs>;

    /// Computes the `wanted` outputs.
    fn run(&self, inputs: Self::Inputs, wanted: &[usize]) -> Result<Self::Outputs>;

    /// Returns true if a failure of [`GroupRunner::run`] is caused by the data of one request. The requests are then run again,
    /// each alone. By default this is an integer division without a result.
    fn is_of_one_request(&self, error: &Error) -> bool {
        DivisionFault::is_cause_of(error)
    }

    /// Returns the wanted outputs, in the order of `wanted`.
    fn outputs(&self, outputs: Self::Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>>;
}

impl<R: GroupRunner + Send> ModelInstance for R {
    fn execute(&mut self, batch: &mut Batch) {
        execute(self, batch);
    }
}

/// Runs every request of the batch and answers it: all together if the model batches, else one by one.
pub fn execute(runner: &impl GroupRunner, batch: &mut Batch) {
    let all: Vec<usize> = (0..batch.len()).filter(|&i| batch.request(i).is_some()).collect();
    match runner.config().has_batching() {
        true if !all.is_empty() => execute_group(runner, batch, &all),
        _ => all.iter().for_each(|&index| execute_group(runner, batch, &[index])),
    }
}

fn execute_group(runner: &impl GroupRunner, batch: &mut Batch, group: &[usize]) {
    match gather(runner, batch, group) {
        Ok(gathered) => {
            batch.mark_input_done();
            match run(runner, batch, group, gathered) {
                Ok(()) => {}
                Err(error) if group.len() > 1 && runner.is_of_one_request(&error) => {
                    execute_each(runner, batch, group);
                }
                Err(error) => fail(batch, group, &error),
            }
        }
        // A request that does not fit must not fail the others.
        Err(_) if group.len() > 1 => execute_each(runner, batch, group),
        Err(error) => fail(batch, group, &error),
    }
}

fn execute_each(runner: &impl GroupRunner, batch: &mut Batch, group: &[usize]) {
    group.iter().for_each(|&index| execute_group(runner, batch, &[index]));
}

/// The inputs of a group, and the outputs that it wants.
struct GatheredInputs<'r, R: GroupRunner> {
    inputs: R::Inputs,
    wanted: Vec<usize>,
    /// The shapes that the inputs are padded to.
    padded: Option<PaddedGroup<'r>>,
}

fn gather<'r, R: GroupRunner>(
    runner: &'r R,
    batch: &Batch,
    group: &[usize],
) -> Result<GatheredInputs<'r, R>> {
    let config = runner.config();
    let wanted = wanted(config, batch, group);
    let padded = PaddedGroup::of(config, batch, group)?;
    let mut joined = Vec::with_capacity(config.execution_inputs().len());
    for (number, spec) in config.model_inputs().iter().enumerate() {
        let is_scalar = runner.is_scalar(number);
        let own = padded.as_ref().and_then(|padded| padded.join(spec, is_scalar, batch, group));
        if let Some(own) = own {
            joined.push(Some(own?));
            continue;
        }
        let tensors = tensors_of(batch, group, spec)?;
        joined.push(match tensors.is_empty() {
            true => None,
            false => Some(join(spec, is_scalar, config.has_batching(), runner.device(), &tensors)?),
        });
    }
    for target in config.execution_inputs().iter().skip(config.model_inputs().len()) {
        joined.push(Some(gather_generated(config, batch, group, target)?));
    }
    Ok(GatheredInputs { inputs: runner.prepare(joined, &wanted)?, wanted, padded })
}

/// Makes an input that no request has.
fn gather_generated(
    config: &ModelConfig,
    batch: &Batch,
    group: &[usize],
    target: &TensorSpec,
) -> Result<JoinedInput<'static>> {
    let none = || {
        Error::internal(format!(
            "the configuration has no batch_input whose source fills input '{}'",
            target.name
        ))
    };
    let batch_input = config.batch_input_for(&target.name).ok_or_else(none)?;
    let source = config.input(&batch_input.source).ok_or_else(none)?;
    let sources = tensors_of(batch, group, source)?;
    match sources.is_empty() {
        true => Err(missing(source)),
        false => generate(batch_input, target, &sources),
    }
}

fn run<R: GroupRunner>(
    runner: &R,
    batch: &mut Batch,
    group: &[usize],
    gathered: GatheredInputs<'_, R>,
) -> Result<()> {
    let GatheredInputs { inputs, wanted, padded } = gathered;
    let config = runner.config();
    let outputs = runner.run(inputs, &wanted);
    batch.mark_output_started();
    let outputs = runner.outputs(outputs?, &wanted)?;
    let padded = padded.as_ref();
    let division = Division { config, sizes: sizes(batch, group), batch, group, padded };
    let specs = wanted.iter().filter_map(|&number| config.model_outputs().get(number));
    let split = specs.zip(outputs).map(|(spec, out)| division.split(spec, out));
    let split: Vec<SplitOutput> = split.collect::<Result<_>>()?;
    respond(batch, group, &split);
    Ok(())
}

/// Returns the outputs that some request of the group wants, or that its sequence needs.
fn wanted(config: &ModelConfig, batch: &Batch, group: &[usize]) -> Vec<usize> {
    let outputs = config.model_outputs().iter().enumerate();
    outputs
        .filter(|(_, spec)| config.is_state(&spec.name) || is_wanted(batch, group, &spec.name))
        .map(|(number, _)| number)
        .collect()
}

/// Returns true if some request of the group wants this output.
fn is_wanted(batch: &Batch, group: &[usize], output: &str) -> bool {
    group.iter().filter_map(|&i| batch.request(i)).any(|r| r.wants_output(output))
}

/// Returns the batch size of each request of the group.
fn sizes(batch: &Batch, group: &[usize]) -> Vec<u32> {
    group.iter().filter_map(|&i| Some(batch.request(i)?.batch_size())).collect()
}

fn fail(batch: &mut Batch, group: &[usize], error: &Error) {
    group.iter().for_each(|&index| batch.respond(index, Err(error.clone())));
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    #![allow(
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking, helpers included"
    )]

    use std::sync::Mutex;

    use galatea_types::{Buffer, DataType, PreparedRequest, Tensor};

    use super::*;
    use crate::{
        Outcome,
        batching::Content,
        testing::{FakeDevice, model_config, pending, request},
    };

    /// Answers its input, and notes how many items it ran at once.
    struct Echo {
        config: ModelConfig,
        runs: Mutex<Vec<i64>>,
        /// Where it takes its input and gives its output.
        device: Option<FakeDevice>,
    }

    impl GroupRunner for Echo {
        type Inputs = ModelOutput;
        type Outputs = ModelOutput;

        fn config(&self) -> &ModelConfig {
            &self.config
        }

        fn device(&self) -> Option<&dyn DeviceAllocator> {
            self.device.as_ref().map(|device| device as &dyn DeviceAllocator)
        }

        fn prepare(
            &self,
            joined: Vec<Option<JoinedInput<'_>>>,
            _: &[usize],
        ) -> Result<ModelOutput> {
            match joined.into_iter().flatten().next() {
                Some(JoinedInput { shape, content: Content::OnDevice(data), .. }) => {
                    Ok(ModelOutput { shape, data })
                }
                Some(JoinedInput { shape, content: Content::Elements(data), .. }) => {
                    Ok(ModelOutput { shape, data: data.into() })
                }
                _ => Err(Error::internal("no input of a fixed size")),
            }
        }

        fn run(&self, inputs: ModelOutput, _: &[usize]) -> Result<ModelOutput> {
            self.runs.lock().expect("no panic").push(inputs.shape[0]);
            if let Some(device) = &self.device {
                return Ok(ModelOutput { data: device.map(&inputs.data, |byte| byte)?, ..inputs });
            }
            match inputs.data.host()?.first() {
                Some(0) => Err(Error::internal("zero")),
                _ if inputs.data.host()?.contains(&255) => Err(Error::internal("one is bad")),
                _ => Ok(inputs),
            }
        }

        fn is_of_one_request(&self, error: &Error) -> bool {
            error.message() == "one is bad"
        }

        fn outputs(&self, outputs: ModelOutput, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
            Ok(vec![outputs; wanted.len()])
        }
    }

    fn echo(max_batch_size: u32) -> Echo {
        let tensor =
            |kind, name| format!("{kind} {{ name: '{name}' data_type: TYPE_UINT8 dims: 2 }}");
        let config = model_config(&format!(
            "name: 'm' backend: 'b' max_batch_size: {max_batch_size} {} {}",
            tensor("input", "x"),
            tensor("output", "y")
        ));
        Echo { config, runs: Mutex::default(), device: None }
    }

    fn ask(bytes: &[u8], shape: &[i64]) -> PreparedRequest {
        request("m", 1, vec![Tensor::new("x", DataType::Uint8, shape, bytes.to_vec())])
    }

    /// What each request was answered, an error by its message.
    fn answers(echo: &Echo, requests: Vec<PreparedRequest>) -> Vec<Result<Vec<u8>, String>> {
        let pending = requests.into_iter().map(|request| pending(request).0);
        let mut batch = Batch::new("m".into(), 1, pending);
        execute(echo, &mut batch);
        let answer = |outcome| match outcome {
            Outcome::Answered(Ok(response)) => {
                Ok(response.outputs[0].data.to_host().expect("copied").to_vec())
            }
            Outcome::Answered(Err(error)) => Err(error.message().to_owned()),
            other => panic!("{other:?}"),
        };
        batch.into_outcomes().map(|(_, outcome)| answer(outcome)).collect()
    }

    #[test]
    fn requests_run_together_if_the_model_batches() {
        let echo = echo(4);
        let requests = vec![ask(&[1, 2], &[1, 2]), ask(&[3, 4], &[1, 2])];
        assert_eq!(answers(&echo, requests), [Ok(vec![1, 2]), Ok(vec![3, 4])]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2]);
    }

    #[test]
    fn a_ragged_batch_is_one_run_split_by_the_shapes_of_its_inputs() {
        let text = |output: &str| {
            format!(
                "name: 'm' backend: 'b' max_batch_size: 4
                 input {{ name: 'x' data_type: TYPE_UINT8 dims: -1 allow_ragged_batch: true }}
                 output {{ name: 'y' data_type: TYPE_UINT8 {output} }}
                 batch_output {{ target_name: 'y' source_input: 'x' }}"
            )
        };
        let echo = |output| Echo { config: model_config(&text(output)), ..echo(4) };
        let requests =
            || vec![ask(&[1], &[1, 1]), ask(&[2, 3, 4, 5], &[2, 2]), ask(&[6, 7], &[1, 2])];
        let whole = echo("dims: -1");
        let expected = [Ok(vec![1]), Ok(vec![2, 3, 4, 5]), Ok(vec![6, 7])];
        assert_eq!(answers(&whole, requests()), expected);
        assert_eq!(*whole.runs.lock().expect("no panic"), [7]);
        // Of a fixed dimension each item has as much: what is left over is nobody's.
        let fixed = echo("dims: 1");
        let expected = [Ok(vec![1]), Ok(vec![2, 3]), Ok(vec![4])];
        assert_eq!(answers(&fixed, requests()), expected);
        let too_much = answers(&echo("dims: 3"), requests());
        let text = "output 'y' of model 'm' has shape [7], which cannot be divided by the shapes of input 'x'";
        assert_eq!(too_much[0], Err(text.to_owned()));
    }

    #[test]
    fn requests_run_one_by_one_if_the_model_does_not_batch() {
        let echo = echo(0);
        let requests = vec![ask(&[0, 2], &[2]), ask(&[3, 4], &[2])];
        assert_eq!(answers(&echo, requests), [Err("zero".to_owned()), Ok(vec![3, 4])]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2, 2]);
    }

    #[test]
    fn an_unfit_request_fails_alone_and_a_failed_run_fails_all() {
        let echo = echo(4);
        let requests = vec![ask(&[1, 2], &[1, 2]), ask(&[3], &[1, 2]), ask(&[5, 6], &[1, 2])];
        let got = answers(&echo, requests);
        assert_eq!((&got[0], &got[2]), (&Ok(vec![1, 2]), &Ok(vec![5, 6])));
        assert!(got[1].as_ref().is_err_and(|text| text.contains("do not fill shape [1,2]")));
        assert_eq!(*echo.runs.lock().expect("no panic"), [1, 1]);

        let requests = vec![ask(&[0, 2], &[1, 2]), ask(&[3, 4], &[1, 2])];
        assert_eq!(answers(&echo, requests), [Err("zero".to_owned()), Err("zero".to_owned())]);
    }

    #[test]
    fn bad_data_of_one_request_does_not_fail_the_others() {
        let echo = echo(4);
        let requests = vec![ask(&[1, 2], &[1, 2]), ask(&[255, 4], &[1, 2])];
        assert_eq!(answers(&echo, requests), [Ok(vec![1, 2]), Err("one is bad".to_owned())]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2, 1, 1]);
    }

    /// Requests whose inputs lie in the device's memory, in that of another one, and in the host's.
    fn scattered(device: &FakeDevice) -> Vec<PreparedRequest> {
        let data = [device.buffer(&[1, 2]), FakeDevice::gpu(9).buffer(&[3, 4]), vec![5, 6].into()];
        let ask =
            |data: Buffer| request("m", 1, vec![Tensor::new("x", DataType::Uint8, [1, 2], data)]);
        data.into_iter().map(ask).collect()
    }

    #[test]
    fn inputs_in_device_memory_are_joined_if_the_model_supports_it() {
        let device = FakeDevice::gpu(1);
        let expected = [Ok(vec![1, 2]), Ok(vec![3, 4]), Ok(vec![5, 6])];
        let on_device = Echo { device: Some(device.clone()), ..echo(4) };
        assert_eq!(answers(&on_device, scattered(&device)), expected);
        assert_eq!(*on_device.runs.lock().expect("no panic"), [3]);
        assert_eq!(device.copies_to_host(), 3, "the answers alone");
        // A model without a device gets all of it in host memory.
        let on_host = echo(4);
        assert_eq!(answers(&on_host, scattered(&device)), expected);
        assert_eq!(device.copies_to_host(), 4);
        let alone = scattered(&device).into_iter().take(1).collect();
        assert_eq!(answers(&echo(0), alone), [Ok(vec![1, 2])]);
    }

    #[test]
    fn texts_in_device_memory_are_refused_with_the_reason() {
        let config = model_config(
            "name: 'm' backend: 'b' input { name: 'x' data_type: TYPE_STRING dims: 1 }
             output { name: 'y' data_type: TYPE_STRING dims: 1 }",
        );
        let data = FakeDevice::gpu(1).buffer(b"\x01\0\0\0a");
        let tensor = Tensor::new("x", DataType::Bytes, [1], data);
        let answer = answers(&Echo { config, ..echo(0) }, vec![request("m", 1, vec![tensor])]);
        let text =
            "tensor 'x': the data lies in the memory of GPU 1, where the host cannot read it";
        assert_eq!(answer, [Err(text.to_owned())]);
    }
}
