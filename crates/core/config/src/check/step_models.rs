//! Whether an ensemble and the models of its steps fit together: names, data types, shapes and batch sizes.

use std::{collections::BTreeMap, sync::Arc};

use galatea_proto::inference::model_config::SchedulingChoice::EnsembleScheduling;
use galatea_types::{DataType, Error, Shape, suggest};

use super::{
    at::{About, At},
    response_cache::{self, ResponseCacheError},
};
use crate::{Diagnostic, EnsembleStep, FieldPath, ModelConfig, Scheduling, TensorSpec};

/// How an ensemble does not fit the models of its steps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepModelError {
    /// A model takes smaller batches than the ensemble.
    #[error(
        "ensemble {ensemble} allows maximum batch size {wanted}, but it contains model {model} which only \
         allows maximum batch size to be {allowed}"
    )]
    BatchSize {
        /// The ensemble.
        ensemble: Arc<str>,
        /// Its `max_batch_size`.
        wanted: u32,
        /// The model.
        model: Arc<str>,
        /// The model's `max_batch_size`.
        allowed: u32,
    },
    /// A tensor does not fit a model.
    #[error("in ensemble {ensemble}, {error}")]
    Step {
        /// The ensemble.
        ensemble: Arc<str>,
        /// What does not fit.
        error: StepError,
    },
}

/// How a tensor of an ensemble does not fit the model of a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The model has no such input.
    #[error("ensemble tensor {tensor} is mapping to non-existing input {input} in model {model}")]
    UnknownInput {
        /// The tensor.
        tensor: Arc<str>,
        /// The input in the step's map.
        input: Arc<str>,
        /// The model.
        model: Arc<str>,
        /// What it has, in words.
        known: String,
    },
    /// The model has no such output.
    #[error(
        "ensemble tensor {tensor} is mapped from non-existing output {output} in model {model}"
    )]
    UnknownOutput {
        /// The tensor.
        tensor: Arc<str>,
        /// The output in the step's map.
        output: Arc<str>,
        /// The model.
        model: Arc<str>,
        /// What it has, in words.
        known: String,
    },
    /// The model needs an input that the step does not map.
    #[error("input {input} in model {model} is not mapped to any ensemble tensors")]
    UnmappedInput {
        /// The input.
        input: Arc<str>,
        /// The model.
        model: Arc<str>,
    },
    /// Two models, or a model and the ensemble, declare a tensor differently.
    #[error(
        "ensemble tensor {tensor}: inconsistent {what}: {one} is inferred from model {model} while {other} is \
         inferred from model {other_model}"
    )]
    Inconsistent {
        /// The tensor.
        tensor: Box<str>,
        /// Data type or shape.
        what: &'static str,
        /// What the first model declares.
        one: Box<str>,
        /// The first model.
        model: Box<str>,
        /// What the other declares.
        other: Box<str>,
        /// The other model.
        other_model: Box<str>,
    },
}

impl From<At<StepModelError>> for Error {
    fn from(error: At<StepModelError>) -> Self {
        let found = into_diagnostic(error);
        Error::invalid_arg(found.text.as_str()).with_source(found)
    }
}

fn uncacheable(error: At<ResponseCacheError>) -> Diagnostic {
    Diagnostic::error(error.problem.to_string()).about(error.field)
}

fn into_diagnostic(error: At<StepModelError>) -> Diagnostic {
    let found = Diagnostic::error(error.problem.to_string()).about(error.field);
    match advice(&error.problem) {
        Some(advice) => found.with_advice(advice),
        None => found,
    }
}

fn advice(error: &StepModelError) -> Option<String> {
    Some(match error {
        StepModelError::BatchSize { allowed, model, .. } => format!(
            "write `max_batch_size: {allowed}` or less here, or raise it in the configuration of `{model}`"
        ),
        StepModelError::Step { error, .. } => match error {
            StepError::UnknownInput { known, .. } | StepError::UnknownOutput { known, .. } => {
                known.clone()
            }
            StepError::UnmappedInput { input, .. } => {
                format!("add `input_map {{ key: \"{input}\" value: \"...\" }}` to this step")
            }
            StepError::Inconsistent { .. } => {
                "both must describe the tensor alike: correct the configuration that is wrong"
                    .to_owned()
            }
        },
    })
}

/// What else the key of a map could mean. A key is the name in the step's model, which is easily mistaken for the
/// ensemble's.
fn known_names(side: &str, name: &str, model: &str, specs: &[TensorSpec]) -> String {
    let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
    if let Some(near) = suggest::nearest(name, names.iter().copied()).first() {
        return format!("did you mean `{near}`?");
    }
    let listed: Vec<_> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
    let listed = listed.join(", ");
    format!(
        "`key` is the name in the model, `value` the one in the ensemble; model `{model}` has {side} {listed}"
    )
}

/// What is known of an ensemble tensor, and which model it was learnt from.
struct Node<'a> {
    model: &'a str,
    data_type: DataType,
    dims: Shape,
    /// With the batch dimension, where the model has one.
    full_dims: Shape,
}

impl ModelConfig {
    /// This ensemble's configuration with what follows from `models`, those of its steps in order: it is
    /// decoupled where one of them is. Any other configuration stays as it is.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text, which names ensemble, step and tensor, when they do not fit.
    pub fn with_step_models(
        &self,
        models: &[Arc<ModelConfig>],
    ) -> galatea_types::Result<ModelConfig> {
        let mut config = self.clone();
        if let Scheduling::Ensemble(ensembling) = &self.scheduling {
            let known = models.iter().map(|model| Some(&**model));
            if let Some(error) = check_steps(self, &ensembling.steps, known).next() {
                return Err(error.into());
            }
            config.is_decoupled = models.iter().any(|m| m.is_decoupled);
            let policy = config.raw.model_transaction_policy.get_or_insert_default();
            policy.decoupled = config.is_decoupled;
        }
        Ok(config)
    }

    /// Whether the responses of this ensemble, as it is with the models of its steps, can be cached if they are to be.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text.
    pub fn check_cacheable(&self) -> galatea_types::Result<()> {
        response_cache::check_ensemble(self, self.is_decoupled).map_err(|error| {
            let found = uncacheable(error);
            Error::invalid_arg(found.text.as_str()).with_source(found)
        })
    }

    /// How this ensemble does not fit the models of its steps, at most one mistake per step. `models`: in the order of the
    /// steps, as far as they are known. Their places are found by [`ConfigSource`](crate::ConfigSource).
    pub fn step_mistakes(&self, models: &[Option<Arc<ModelConfig>>]) -> Vec<Diagnostic> {
        let Scheduling::Ensemble(ensembling) = &self.scheduling else { return Vec::new() };
        let is_decoupled = models.iter().flatten().any(|model| model.is_decoupled);
        let cache = response_cache::check_ensemble(self, is_decoupled).err().map(uncacheable);
        let models = models.iter().map(Option::as_deref);
        check_steps(self, &ensembling.steps, models).map(into_diagnostic).chain(cache).collect()
    }

    /// This ensemble's configuration with the namespaces of the models that its steps were found to mean, in order. What
    /// the user wrote there does not count.
    #[must_use]
    pub fn with_step_namespaces<'a>(mut self, namespaces: impl Iterator<Item = &'a str>) -> Self {
        if let Some(EnsembleScheduling(ensembling)) = &mut self.raw.scheduling_choice {
            for (step, namespace) in ensembling.step.iter_mut().zip(namespaces) {
                namespace.clone_into(&mut step.model_namespace);
            }
        }
        self
    }
}

/// The first mistake of each step. `None` in `models`: nothing is known of that one.
fn check_steps<'a>(
    ensemble: &'a ModelConfig,
    steps: &'a [EnsembleStep],
    models: impl Iterator<Item = Option<&'a ModelConfig>>,
) -> impl Iterator<Item = At<StepModelError>> {
    let mut nodes = BTreeMap::new();
    for spec in ensemble.inputs().iter().chain(ensemble.outputs()) {
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        nodes.insert(&*spec.name, Node::new(ensemble, spec.data_type, dims));
    }
    steps.iter().zip(models).enumerate().filter_map(move |(index, (step, model))| {
        let model = model?;
        if let Err(error) = check_batch_size(ensemble, model) {
            return Some(error.at("max_batch_size"));
        }
        let checked = check_inputs(step, model, &mut nodes)
            .and_then(|()| check_outputs(step, model, &mut nodes));
        let error = checked.err()?.inside(FieldPath::from("ensemble_scheduling.step").index(index));
        let ensemble = ensemble.name().clone();
        Some(error.map(|error| StepModelError::Step { ensemble, error }))
    })
}

impl<'a> Node<'a> {
    fn new(model: &'a ModelConfig, data_type: DataType, dims: &Shape) -> Self {
        let full_dims = if model.has_batching() { dims.with_leading(-1) } else { dims.clone() };
        Self { model: model.name(), data_type, dims: dims.clone(), full_dims }
    }

    fn of_step(model: &'a ModelConfig, spec: &TensorSpec) -> Self {
        Self::new(model, spec.data_type, &spec.dims)
    }
}

/// An ensemble with a batch dimension may contain a model without one, as long as the shapes match.
fn check_batch_size(ensemble: &ModelConfig, model: &ModelConfig) -> Result<(), StepModelError> {
    let (wanted, allowed) = (ensemble.max_batch_size(), model.max_batch_size());
    if allowed == 0 || allowed >= wanted {
        return Ok(());
    }
    let (ensemble, model) = (ensemble.name().clone(), model.name().clone());
    Err(StepModelError::BatchSize { ensemble, wanted, model, allowed })
}

fn check_inputs<'a>(
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<(), At<StepError>> {
    for (input, tensor) in &step.inputs {
        if model.input(input).is_none() {
            let (tensor, input) = (tensor.clone(), input.clone());
            let known = known_names("inputs", &input, model.name(), model.inputs());
            let field = entry("input_map", &input);
            let model = model.name().clone();
            return Err(StepError::UnknownInput { tensor, input, model, known }.at(field));
        }
    }
    for spec in model.inputs() {
        match step.inputs.get(&spec.name) {
            Some(tensor) => compare(tensor, Node::of_step(model, spec), nodes)
                .map_err(|error| error.at(entry("input_map", &spec.name)))?,
            None if spec.is_optional => {}
            None => {
                let (input, model) = (spec.name.clone(), model.name().clone());
                return Err(StepError::UnmappedInput { input, model }.at("input_map"));
            }
        }
    }
    Ok(())
}

fn check_outputs<'a>(
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<(), At<StepError>> {
    for (output, tensor) in &step.outputs {
        if model.output(output).is_none() {
            let (tensor, output) = (tensor.clone(), output.clone());
            let known = known_names("outputs", &output, model.name(), model.outputs());
            let field = entry("output_map", &output);
            let model = model.name().clone();
            return Err(StepError::UnknownOutput { tensor, output, model, known }.at(field));
        }
    }
    for spec in model.outputs() {
        if let Some(tensor) = step.outputs.get(&spec.name) {
            compare(tensor, Node::of_step(model, spec), nodes)
                .map_err(|error| error.at(entry("output_map", &spec.name)))?;
        }
    }
    Ok(())
}

/// The entry of a step's map.
fn entry(map: &'static str, key: &str) -> FieldPath {
    FieldPath::from(map).named(key)
}

/// Compares what a step declares of a tensor with the first declaration of it.
fn compare<'a>(
    tensor: &'a str,
    declared: Node<'a>,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<(), StepError> {
    let Some(first) = nodes.get(tensor) else {
        nodes.insert(tensor, declared);
        return Ok(());
    };
    let (what, one, other) = if first.data_type != declared.data_type {
        let names = (first.data_type.config_name(), declared.data_type.config_name());
        ("data type", names.0.into(), names.1.into())
    } else if !overlaps(&first.dims, &declared.dims)
        && !overlaps(&first.full_dims, &declared.full_dims)
    {
        ("shape", first.full_dims.to_string().into(), declared.full_dims.to_string().into())
    } else {
        return Ok(());
    };
    Err(StepError::Inconsistent {
        tensor: tensor.into(),
        what,
        one,
        model: first.model.into(),
        other,
        other_model: declared.model.into(),
    })
}

fn overlaps(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a == -1 || b == -1 || a == b)
}
