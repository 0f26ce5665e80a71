//! Whether an ensemble and the models of its steps fit together: names, data types, shapes and batch sizes.

use std::{collections::BTreeMap, sync::Arc};

use galatea_types::{DataType, Error, Result, Shape};

use crate::{EnsembleStep, ModelConfig, Scheduling, TensorSpec};

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
    pub fn with_step_models(&self, models: &[Arc<ModelConfig>]) -> Result<ModelConfig> {
        let mut config = self.clone();
        if let Scheduling::Ensemble(ensembling) = &self.scheduling {
            check_steps(self, &ensembling.steps, models)?;
            config.is_decoupled = models.iter().any(|m| m.is_decoupled);
            let policy = config.raw.model_transaction_policy.get_or_insert_default();
            policy.decoupled = config.is_decoupled;
        }
        Ok(config)
    }
}

fn check_steps(
    ensemble: &ModelConfig,
    steps: &[EnsembleStep],
    models: &[Arc<ModelConfig>],
) -> Result<()> {
    let mut nodes = BTreeMap::new();
    for spec in ensemble.inputs().iter().chain(ensemble.outputs()) {
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        nodes.insert(&*spec.name, Node::new(ensemble, spec.data_type, dims));
    }
    for (step, model) in steps.iter().zip(models) {
        check_batch_size(ensemble, model)?;
        check_inputs(ensemble, step, model, &mut nodes)?;
        check_outputs(ensemble, step, model, &mut nodes)?;
    }
    Ok(())
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

fn refuse(ensemble: &ModelConfig, text: &str) -> Result<()> {
    Err(Error::invalid_arg(format!("in ensemble {}, {text}", ensemble.name())))
}

/// A model without batch dimension may stand in an ensemble that has one, as long as the shapes agree.
fn check_batch_size(ensemble: &ModelConfig, model: &ModelConfig) -> Result<()> {
    let (wanted, allowed) = (ensemble.max_batch_size(), model.max_batch_size());
    if allowed == 0 || allowed >= wanted {
        return Ok(());
    }
    Err(Error::invalid_arg(format!(
        "ensemble {} allows maximum batch size {wanted}, but it contains model {} which only allows \
         maximum batch size to be {allowed}",
        ensemble.name(),
        model.name()
    )))
}

fn check_inputs<'a>(
    ensemble: &ModelConfig,
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    for (input, tensor) in &step.inputs {
        if model.input(input).is_none() {
            let text = format!(
                "ensemble tensor {tensor} is mapping to non-existing input {input} in model {}",
                model.name()
            );
            return refuse(ensemble, &text);
        }
    }
    for spec in model.inputs() {
        match step.inputs.get(&spec.name) {
            Some(tensor) => agree(ensemble, tensor, Node::of_step(model, spec), nodes)?,
            None if spec.is_optional => {}
            None => {
                let text = format!(
                    "input {} in model {} is not mapped to any ensemble tensors",
                    spec.name,
                    model.name()
                );
                return refuse(ensemble, &text);
            }
        }
    }
    Ok(())
}

fn check_outputs<'a>(
    ensemble: &ModelConfig,
    step: &'a EnsembleStep,
    model: &'a ModelConfig,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    for (output, tensor) in &step.outputs {
        if model.output(output).is_none() {
            let text = format!(
                "ensemble tensor {tensor} is mapped from non-existing output {output} in model {}",
                model.name()
            );
            return refuse(ensemble, &text);
        }
    }
    for spec in model.outputs() {
        if let Some(tensor) = step.outputs.get(&spec.name) {
            agree(ensemble, tensor, Node::of_step(model, spec), nodes)?;
        }
    }
    Ok(())
}

/// Holds what a step says of a tensor against what is known of it; the first to speak is believed.
fn agree<'a>(
    ensemble: &ModelConfig,
    tensor: &'a str,
    said: Node<'a>,
    nodes: &mut BTreeMap<&'a str, Node<'a>>,
) -> Result<()> {
    let Some(known) = nodes.get(tensor) else {
        nodes.insert(tensor, said);
        return Ok(());
    };
    let (what, a, b) = if known.data_type != said.data_type {
        let names = (known.data_type.config_name(), said.data_type.config_name());
        ("data type", names.0.to_owned(), names.1.to_owned())
    } else if !overlaps(&known.dims, &said.dims) && !overlaps(&known.full_dims, &said.full_dims) {
        ("shape", known.full_dims.to_string(), said.full_dims.to_string())
    } else {
        return Ok(());
    };
    let text = format!(
        "ensemble tensor {tensor}: inconsistent {what}: {a} is inferred from model {} while {b} is inferred \
         from model {}",
        known.model, said.model
    );
    refuse(ensemble, &text)
}

fn overlaps(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| a == -1 || b == -1 || a == b)
}
