//! The one loop over a batch: groups, inputs, the run, outputs, responses, times and errors.

use galatea_config::ModelConfig;
use galatea_types::{Error, Result};

use super::{
    join::{Joined, join, tensors_of},
    model_output::ModelOutput,
    split::{SplitOutput, respond},
};
use crate::Batch;

/// How a model runs a group of requests that are joined along the first dimension, in three stages: what each of
/// them takes is counted apart.
pub trait GroupRunner {
    /// The inputs as the model's library takes them.
    type Inputs;
    /// The outputs as the model's library gives them.
    type Outputs;

    /// Of the model. Its `model_inputs` and `model_outputs` are numbered from 0 in what follows.
    fn config(&self) -> &ModelConfig;

    /// Whether the model declares this input without dimensions, where clients send `[1]`.
    fn is_scalar(&self, input: usize) -> bool {
        let _ = input;
        false
    }

    /// Makes the inputs ready. One per input of the configuration; `None` for an optional one that no request
    /// brought. When this fails for several requests, each is run alone.
    fn prepare(&self, joined: Vec<Option<Joined<'_>>>) -> Result<Self::Inputs>;

    /// Computes. `wanted`: the outputs that some request asks for.
    fn run(&self, inputs: Self::Inputs, wanted: &[usize]) -> Result<Self::Outputs>;

    /// Whether a failure of [`GroupRunner::run`] is that of one request's data, so that those that ran with it are
    /// to be run again, each alone.
    fn is_of_one_request(&self, error: &Error) -> bool {
        let _ = error;
        false
    }

    /// The wanted outputs, in the order of `wanted`.
    fn outputs(&self, outputs: Self::Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>>;
}

/// Runs every request of the batch and answers it: all together where the model batches, else one by one.
pub fn execute(runner: &impl GroupRunner, batch: &mut Batch) {
    let all: Vec<usize> = (0..batch.len()).filter(|&i| batch.request(i).is_some()).collect();
    match runner.config().has_batching() {
        true if !all.is_empty() => execute_group(runner, batch, &all),
        _ => all.iter().for_each(|&index| execute_group(runner, batch, &[index])),
    }
}

fn execute_group(runner: &impl GroupRunner, batch: &mut Batch, group: &[usize]) {
    match gather(runner, batch, group) {
        Ok(inputs) => {
            batch.mark_input_done();
            match run(runner, batch, group, inputs) {
                Ok(()) => {}
                Err(error) if group.len() > 1 && runner.is_of_one_request(&error) => {
                    execute_each(runner, batch, group);
                }
                Err(error) => fail(batch, group, &error),
            }
        }
        // One that does not fit must not fail those beside it.
        Err(_) if group.len() > 1 => execute_each(runner, batch, group),
        Err(error) => fail(batch, group, &error),
    }
}

fn execute_each(runner: &impl GroupRunner, batch: &mut Batch, group: &[usize]) {
    group.iter().for_each(|&index| execute_group(runner, batch, &[index]));
}

fn gather<R: GroupRunner>(runner: &R, batch: &Batch, group: &[usize]) -> Result<R::Inputs> {
    let config = runner.config();
    let mut joined = Vec::with_capacity(config.model_inputs().len());
    for (number, spec) in config.model_inputs().iter().enumerate() {
        let tensors = tensors_of(batch, group, spec)?;
        joined.push(match tensors.is_empty() {
            true => None,
            false => Some(join(spec, runner.is_scalar(number), config.has_batching(), &tensors)?),
        });
    }
    runner.prepare(joined)
}

fn run<R: GroupRunner>(
    runner: &R,
    batch: &mut Batch,
    group: &[usize],
    inputs: R::Inputs,
) -> Result<()> {
    let config = runner.config();
    let wanted: Vec<usize> = config
        .model_outputs()
        .iter()
        .enumerate()
        .filter(|(_, spec)| config.is_state(&spec.name) || is_wanted(batch, group, &spec.name))
        .map(|(number, _)| number)
        .collect();
    let outputs = runner.run(inputs, &wanted);
    batch.mark_output_started();
    let outputs = runner.outputs(outputs?, &wanted)?;
    let sizes = sizes(batch, group);
    let specs = wanted.iter().filter_map(|&number| config.model_outputs().get(number));
    let split = specs.zip(outputs).map(|(spec, out)| SplitOutput::new(config, spec, out, &sizes));
    let split: Vec<SplitOutput> = split.collect::<Result<_>>()?;
    respond(batch, group, &split);
    Ok(())
}

/// Whether some request of the group asks for this output.
fn is_wanted(batch: &Batch, group: &[usize], output: &str) -> bool {
    group.iter().filter_map(|&i| batch.request(i)).any(|r| r.wants_output(output))
}

/// Batch size of each request of the group.
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

    use galatea_types::{DataType, PreparedRequest, Tensor};

    use super::*;
    use crate::{
        Outcome,
        batching::Content,
        testing::{model_config, pending, request},
    };

    /// Answers its input, and notes how many items it ran at once.
    struct Echo {
        config: ModelConfig,
        runs: Mutex<Vec<i64>>,
    }

    impl GroupRunner for Echo {
        type Inputs = ModelOutput;
        type Outputs = ModelOutput;

        fn config(&self) -> &ModelConfig {
            &self.config
        }

        fn prepare(&self, joined: Vec<Option<Joined<'_>>>) -> Result<ModelOutput> {
            match joined.into_iter().flatten().next() {
                Some(Joined { shape, content: Content::Elements(data), .. }) => {
                    Ok(ModelOutput { shape, data: data.into() })
                }
                _ => Err(Error::internal("no input of a fixed size")),
            }
        }

        fn run(&self, inputs: ModelOutput, _: &[usize]) -> Result<ModelOutput> {
            self.runs.lock().expect("no panic").push(inputs.shape[0]);
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
        Echo { config, runs: Mutex::default() }
    }

    fn ask(bytes: &[u8], shape: &[i64]) -> PreparedRequest {
        request("m", 1, vec![Tensor::new("x", DataType::Uint8, shape, bytes.to_vec())])
    }

    /// What each request was answered, an error by its message.
    fn answers(echo: &Echo, requests: Vec<PreparedRequest>) -> Vec<Result<Vec<u8>, String>> {
        let pending = requests.into_iter().map(|request| pending(request).0).collect();
        let mut batch = Batch::new("m".into(), 1, pending);
        execute(echo, &mut batch);
        let answer = |outcome| match outcome {
            Outcome::Answered(Ok(response)) => {
                Ok(response.outputs[0].host().expect("host memory").to_vec())
            }
            Outcome::Answered(Err(error)) => Err(error.message().to_owned()),
            other => panic!("{other:?}"),
        };
        batch.into_outcomes().map(|(_, outcome)| answer(outcome)).collect()
    }

    #[test]
    fn requests_run_together_where_the_model_batches() {
        let echo = echo(4);
        let requests = vec![ask(&[1, 2], &[1, 2]), ask(&[3, 4], &[1, 2])];
        assert_eq!(answers(&echo, requests), [Ok(vec![1, 2]), Ok(vec![3, 4])]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2]);
    }

    #[test]
    fn requests_run_one_by_one_where_it_does_not() {
        let echo = echo(0);
        let requests = vec![ask(&[0, 2], &[2]), ask(&[3, 4], &[2])];
        assert_eq!(answers(&echo, requests), [Err("zero".to_owned()), Ok(vec![3, 4])]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2, 2]);
    }

    #[test]
    fn one_that_does_not_fit_fails_alone_and_a_failed_run_fails_all() {
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
    fn a_failure_of_one_requests_data_leaves_the_others_alone() {
        let echo = echo(4);
        let requests = vec![ask(&[1, 2], &[1, 2]), ask(&[255, 4], &[1, 2])];
        assert_eq!(answers(&echo, requests), [Ok(vec![1, 2]), Err("one is bad".to_owned())]);
        assert_eq!(*echo.runs.lock().expect("no panic"), [2, 1, 1]);
    }
}
