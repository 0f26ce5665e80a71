//! Checks an ensemble against the models of its steps: names, data types, shapes and batch sizes.

use std::{collections::BTreeMap, sync::Arc};

use galatea_proto::inference::model_config::SchedulingChoice::EnsembleScheduling;
use galatea_types::{Code, DataType, Shape};

use super::{
    mistake::{Mistake, Result, element_of, inside, meant, refuse},
    response_cache,
};
use crate::{Diagnostic, EnsembleStep, FieldPath, ModelConfig, Scheduling, TensorSpec};

/// The known facts about an ensemble tensor, and the model they come from.
struct Node<'a> {
    model: &'a str,
    data_type: DataType,
    dims: Shape,
    /// The dimensions with the batch dimension, if the model has one.
    full_dims: Shape,
}

impl ModelConfig {
    /// Completes this ensemble's configuration from `models`, the models of its steps in order: it is decoupled when one of them
    /// is. Any other configuration stays as it is.
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
                return Err(error.into_unplaced_error(Code::InvalidArg));
            }
            config.is_decoupled = models.iter().any(|m| m.is_decoupled);
            let policy = config.raw.model_transaction_policy.get_or_insert_default();
            policy.decoupled = config.is_decoupled;
        }
        Ok(config)
    }

    /// Checks that the responses of this ensemble can be cached. The models of its steps must be known.
    ///
    /// # Errors
    /// `InvalidArg` with Triton's text.
    pub fn check_cacheable(&self) -> galatea_types::Result<()> {
        response_cache::check_ensemble(self, self.is_decoupled)
            .map_err(|found| found.into_unplaced_error(Code::InvalidArg))
    }

    /// Returns the mistakes between this ensemble and the models of its steps, at most one per step. `models` has the known
    /// models in the order of the steps. [`ConfigSource`](crate::ConfigSource) finds the places of the mistakes.
    pub fn step_mistakes(&self, models: &[Option<Arc<ModelConfig>>]) -> Vec<Diagnostic> {
        let Scheduling::Ensemble(ensembling) = &self.scheduling else { return Vec::new() };
        let is_decoupled = models.iter().flatten().any(|model| model.is_decoupled);
        let cache = response_cache::check_ensemble(self, is_decoupled).err();
        let models = models.iter().map(Option::as_deref);
        let found = check_steps(self, &ensembling.steps, models).chain(cache);
        found.map(|found| *found).collect()
    }

    /// Sets the namespaces of the models that the steps refer to, in order. They replace what the user wrote.
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

/// Returns the first mistake of each step. `None` in `models` is an unknown model.
fn check_steps<'a>(
    ensemble: &'a ModelConfig,
    steps: &'a [EnsembleStep],
    models: impl Iterator<Item = Option<&'a ModelConfig>>,
) -> impl Iterator<Item = Mistake> {
    let mut nodes = BTreeMap::new();
    for spec in ensemble.inputs().iter().chain(ensemble.outputs()) {
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        nodes.insert(&*spec.name, Node::new(ensemble, spec.data_type, dims));
    }
    steps.iter().zip(models).enumerate().filter_map(move |(index, (step, model))| {
        let model = model?;
        if let Err(error) = check_batch_size(ensemble, model) {
            return Some(error);
        }
        let checked = check_inputs(step, model, &mut nodes)
            .and_then(|()| check_outputs(step, model, &mut nodes));
        let mut error =
            checked.map_err(inside(element_of("ensemble_scheduling.step", index))).err()?;
        error.text.insert_str(0, &format!("in ensemble {}, ", ensemble.name()));
        Some(error)
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

/// Checks the batch sizes. An ensemble with a batch dimension may contain a model without one if the shapes match.
fn check_batch_size(ensemble: &ModelConfig, model: &ModelConfig) -> Result<()> {
    let (wanted, allowed) = (ensemble.max_batch_size(), model.max_batch_size());
    if allowed == 0 || allowed >= wanted {
        return Ok(());
    }
    let (ensemble, model) = (ensemble.name(), model.name());
    let text = format!(
        "ensemble {ensemble} allows maximum batch size {wanted}, but it contains model {model} which only allows maximum \
         batch size to be {allowed}"
    );
    let advice = format!(
        "write `max_batch_size: {allowed}` or less here, or raise it in the configuration of `{model}`"
    );
    refuse("max_batch_size", text, advice)
}

fn check_inputs<'a>(
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    let name = model.name();
    for (input, tensor) in &step.inputs {
        if model.input(input).is_none() {
            let text = format!(
                "ensemble tensor {tensor} is mapping to non-existing input {input} in model {name}"
            );
            let advice = known_names("inputs", input, name, model.inputs());
            return refuse(entry("input_map", input), text, advice);
        }
    }
    for spec in model.inputs() {
        match step.inputs.get(&spec.name) {
            Some(tensor) => compare(tensor, Node::of_step(model, spec), nodes)
                .map_err(inside(entry("input_map", &spec.name)))?,
            None if spec.is_optional => {}
            None => {
                let input = &spec.name;
                let text =
                    format!("input {input} in model {name} is not mapped to any ensemble tensors");
                let advice =
                    format!("add `input_map {{ key: \"{input}\" value: \"...\" }}` to this step");
                return refuse("input_map", text, advice);
            }
        }
    }
    Ok(())
}

fn check_outputs<'a>(
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    let name = model.name();
    for (output, tensor) in &step.outputs {
        if model.output(output).is_none() {
            let text = format!(
                "ensemble tensor {tensor} is mapped from non-existing output {output} in model {name}"
            );
            let advice = known_names("outputs", output, name, model.outputs());
            return refuse(entry("output_map", output), text, advice);
        }
    }
    for spec in model.outputs() {
        if let Some(tensor) = step.outputs.get(&spec.name) {
            compare(tensor, Node::of_step(model, spec), nodes)
                .map_err(inside(entry("output_map", &spec.name)))?;
        }
    }
    Ok(())
}

/// Lists other meanings of the key of a map. A key is the name in the step's model; users often write the ensemble's name there.
fn known_names(side: &str, name: &str, model: &str, specs: &[TensorSpec]) -> String {
    let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
    meant(name, &names, |listed| {
        format!(
            "`key` is the name in the model, `value` the one in the ensemble; model `{model}` has {side} {listed}"
        )
    })
}

/// Returns the path of an entry of a step's map.
fn entry(map: &'static str, key: &str) -> FieldPath {
    FieldPath::from(map).named(key)
}

/// Compares a tensor declared by a step with its first declaration.
fn compare<'a>(
    tensor: &'a str,
    declared: Node<'a>,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    let Some(first) = nodes.get(tensor) else {
        nodes.insert(tensor, declared);
        return Ok(());
    };
    let (what, one, other) = if first.data_type != declared.data_type {
        let name = |node: &Node<'_>| node.data_type.config_name().to_owned();
        ("data type", name(first), name(&declared))
    } else if !overlaps(&first.dims, &declared.dims)
        && !overlaps(&first.full_dims, &declared.full_dims)
    {
        ("shape", first.full_dims.to_string(), declared.full_dims.to_string())
    } else {
        return Ok(());
    };
    let (model, other_model) = (first.model, declared.model);
    let text = format!(
        "ensemble tensor {tensor}: inconsistent {what}: {one} is inferred from model {model} while {other} is inferred from \
         model {other_model}"
    );
    refuse("", text, "both must describe the tensor alike: correct the configuration that is wrong")
}

fn overlaps(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a == -1 || b == -1 || a == b)
}
