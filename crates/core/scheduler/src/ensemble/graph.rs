//! The graph of an ensemble, with every name resolved to a number once, at load.
//!
//! Tensors and steps belong to *stages*. Stage 0 holds the ensemble's inputs. The outputs of a decoupled step open a
//! stage of their own, because each of its responses starts a new round of the steps that follow. All tensors that a
//! step reads are in one stage, which [`Graph::new`] checks.

use std::{collections::BTreeMap, sync::Arc};

use galatea_backend::InferTarget;
use galatea_config::{EnsembleStep, Ensembling, ModelConfig, TensorSpec};
use galatea_types::{Error, Result, Shape};

use super::{dispatch::StepTarget, limiter::Limiter, shape::TensorReshape};

/// A model that a step of an ensemble runs on.
#[derive(Clone)]
pub struct StepModel {
    /// The model's configuration.
    pub config: Arc<ModelConfig>,
    /// The model that executes the step's requests; kept as long as the ensemble is.
    pub target: Arc<dyn InferTarget>,
}

pub(super) struct Graph {
    pub name: Arc<str>,
    /// True if the ensemble's own tensors have a batch dimension.
    pub is_batched: bool,
    pub is_decoupled: bool,
    pub inputs: Vec<EnsembleTensor>,
    pub outputs: Vec<EnsembleTensor>,
    pub steps: Vec<Step>,
    /// The steps that read each tensor, each listed once, by stage and slot.
    pub readers: Vec<Vec<Vec<usize>>>,
    /// The stage that holds all outputs of the ensemble.
    pub output_stage: usize,
}

/// The stage and slot of an ensemble tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TensorPlace {
    pub stage: usize,
    pub slot: usize,
}

/// An input or output of the ensemble itself.
pub(super) struct EnsembleTensor {
    pub name: Arc<str>,
    pub slot: usize,
    /// The shape that the steps see, without the batch dimension.
    pub dims: Shape,
    pub reshape: Option<TensorReshape>,
}

pub(super) struct Step {
    pub model_name: Arc<str>,
    pub version: Option<i64>,
    pub is_decoupled: bool,
    pub target: StepTarget,
    pub stage: usize,
    pub is_batched: bool,
    pub inputs: Vec<StepInput>,
    /// The outputs that are mapped to ensemble tensors.
    pub outputs: Vec<StepOutput>,
    /// The number of outputs of the step's model.
    pub model_output_count: usize,
    pub output_stage: usize,
}

pub(super) struct StepInput {
    pub name: Arc<str>,
    pub slot: usize,
    pub dims: Shape,
}

pub(super) struct StepOutput {
    pub requested: Arc<str>,
    pub slot: usize,
}

impl Graph {
    /// # Errors
    /// `InvalidArg` when a step, or the answer, would mix tensors of different decoupled steps; `Internal`
    /// when the configuration was not checked.
    pub fn new(
        config: &ModelConfig,
        ensembling: &Ensembling,
        models: Vec<StepModel>,
    ) -> Result<Self> {
        let layout = Layout::of(config, ensembling, &models)?;
        let tensor = |spec: &TensorSpec| {
            let slot = layout.place(&spec.name)?.slot;
            let dims = spec.reshape.as_ref().unwrap_or(&spec.dims).clone();
            let reshape = TensorReshape::of(spec, config.has_batching());
            Ok(EnsembleTensor { name: spec.name.clone(), slot, dims, reshape })
        };
        let steps = ensembling.steps.iter().zip(models).map(|(step, model)| {
            let limiter = Limiter::new(ensembling.max_inflight_requests).map(Arc::new);
            let target = StepTarget { model: model.target, limiter };
            new_step(step, &model.config, &layout, target)
        });
        let names = config.outputs().iter().map(|spec| &spec.name);
        let mut graph = Self {
            name: config.name().clone(),
            is_batched: config.has_batching(),
            is_decoupled: layout.slot_counts.len() > 1,
            inputs: config.inputs().iter().map(tensor).collect::<Result<_>>()?,
            outputs: config.outputs().iter().map(tensor).collect::<Result<_>>()?,
            steps: steps.collect::<Result<_>>()?,
            readers: layout.slot_counts.iter().map(|&slots| vec![Vec::new(); slots]).collect(),
            // The ensemble itself reads its outputs.
            output_stage: layout.common_stage(names, config.name())?,
        };
        graph.connect();
        Ok(graph)
    }

    fn connect(&mut self) {
        for (number, step) in self.steps.iter().enumerate() {
            for input in &step.inputs {
                let stage = self.readers.get_mut(step.stage);
                let Some(readers) = stage.and_then(|slots| slots.get_mut(input.slot)) else {
                    continue;
                };
                if !readers.contains(&number) {
                    readers.push(number);
                }
            }
        }
    }
}

fn new_step(
    step: &EnsembleStep,
    model: &ModelConfig,
    layout: &Layout<'_>,
    target: StepTarget,
) -> Result<Step> {
    let inputs = step.inputs.iter().map(|(name, tensor)| {
        let spec = model.input(name).ok_or_else(|| no_tensor(name, model.name()))?;
        let slot = layout.place(tensor)?.slot;
        Ok(StepInput { name: spec.name.clone(), slot, dims: spec.dims.clone() })
    });
    // In the order of the model's configuration, in which it most likely answers.
    let specs = model.outputs().iter();
    let mapped = specs.filter_map(|spec| Some((&spec.name, step.outputs.get(&spec.name)?)));
    let outputs = mapped.map(|(name, tensor)| {
        let slot = layout.place(tensor)?.slot;
        Ok(StepOutput { requested: name.clone(), slot })
    });
    let first = |names: &BTreeMap<Arc<str>, Arc<str>>| match names.values().next() {
        Some(tensor) => layout.place(tensor).map(|place| place.stage),
        None => Ok(0),
    };
    Ok(Step {
        model_name: model.name().clone(),
        version: step.model_version,
        is_decoupled: model.is_decoupled(),
        target,
        stage: first(&step.inputs)?,
        is_batched: model.has_batching(),
        inputs: inputs.collect::<Result<_>>()?,
        outputs: outputs.collect::<Result<_>>()?,
        model_output_count: model.outputs().len(),
        output_stage: first(&step.outputs)?,
    })
}

/// The places of all ensemble tensors.
struct Layout<'a> {
    ensemble: &'a str,
    places: BTreeMap<&'a str, TensorPlace>,
    slot_counts: Vec<usize>,
}

impl<'a> Layout<'a> {
    fn of(
        config: &'a ModelConfig,
        ensembling: &'a Ensembling,
        models: &[StepModel],
    ) -> Result<Self> {
        let mut layout =
            Self { ensemble: config.name(), places: BTreeMap::new(), slot_counts: vec![0] };
        for input in config.inputs() {
            layout.add(&input.name, 0);
        }
        let mut open: Vec<_> = ensembling.steps.iter().zip(models).collect();
        while !open.is_empty() {
            let before = open.len();
            let mut left = Vec::new();
            for (step, model) in open {
                if step.inputs.values().all(|t| layout.places.contains_key(&**t)) {
                    layout.add_outputs(step, model.config.is_decoupled())?;
                } else {
                    left.push((step, model));
                }
            }
            if left.len() == before {
                return Err(Error::internal("a step of the ensemble can never run"));
            }
            open = left;
        }
        Ok(layout)
    }

    fn add(&mut self, tensor: &'a str, stage: usize) {
        if let Some(count) = self.slot_counts.get_mut(stage) {
            self.places.insert(tensor, TensorPlace { stage, slot: *count });
            *count += 1;
        }
    }

    fn add_outputs(&mut self, step: &'a EnsembleStep, is_decoupled: bool) -> Result<()> {
        let mut stage = self.common_stage(step.inputs.values(), &step.model_name)?;
        if is_decoupled {
            stage = self.slot_counts.len();
            self.slot_counts.push(0);
        }
        for tensor in step.outputs.values() {
            self.add(tensor, stage);
        }
        Ok(())
    }

    fn common_stage<'t>(
        &self,
        tensors: impl Iterator<Item = &'t Arc<str>>,
        reader: &str,
    ) -> Result<usize> {
        let mut common = None;
        for tensor in tensors {
            let stage = self.place(tensor)?.stage;
            if *common.get_or_insert(stage) != stage {
                return Err(Error::invalid_arg(format!(
                    "in ensemble {}, step of model '{reader}' receives inputs originated from different \
                     decoupled models",
                    self.ensemble
                )));
            }
        }
        Ok(common.unwrap_or(0))
    }

    fn place(&self, tensor: &str) -> Result<TensorPlace> {
        self.places.get(tensor).copied().ok_or_else(|| no_tensor(tensor, self.ensemble))
    }
}

fn no_tensor(tensor: &str, model: &str) -> Error {
    Error::internal(format!("model '{model}' has no tensor '{tensor}'"))
}
