//! One instance of a TorchScript model.

use std::sync::Arc;

use galatea_backend::{
    InstanceSpec, Model, ModelInstance,
    batching::{GroupRunner, JoinedInput, ModelOutput, missing},
};
use galatea_config::ModelConfig;
use galatea_types::{Error, Result};

use crate::{
    model::{TorchModel, place_of},
    outputs,
    torch::{ForwardForm, Input, Module, Output},
};

/// Runs one batch after another on its module, which other instances may use too.
pub(crate) struct TorchInstance {
    model: Arc<TorchModel>,
    module: Arc<Module>,
}

impl TorchInstance {
    fn without_gaps(&self, mut slots: Vec<Option<Input>>) -> Result<Vec<Input>> {
        while slots.last().is_some_and(Option::is_none) {
            slots.pop();
        }
        let gap = slots.iter().position(Option::is_none);
        let lacking = gap.and_then(|gap| {
            let index = self.model.inputs.positions.iter().position(|&p| p == gap)?;
            self.model.config.execution_inputs().get(index)
        });
        lacking.map_or_else(|| Ok(slots.into_iter().flatten().collect()), |s| Err(missing(s)))
    }
}

impl GroupRunner for TorchInstance {
    type Inputs = Vec<Input>;
    type Outputs = Vec<Output>;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    /// Makes the arguments in their order. Only optional ones at the end may be missing.
    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Vec<Input>> {
        let specs = self.model.config.execution_inputs();
        let mut slots: Vec<Option<Input>> = specs.iter().map(|_| None).collect();
        for ((spec, &position), joined) in
            specs.iter().zip(&self.model.inputs.positions).zip(joined)
        {
            let Some(joined) = joined else { continue };
            let input = Input::new(&spec.name, spec.data_type, joined, self.module.writes())?;
            if let Some(slot) = slots.get_mut(position) {
                *slot = Some(input);
            }
        }
        match self.model.inputs.form {
            ForwardForm::Dictionary => Ok(slots.into_iter().flatten().collect()),
            ForwardForm::Positional => self.without_gaps(slots),
        }
    }

    fn run(&self, inputs: Vec<Input>, _: &[usize]) -> Result<Vec<Output>> {
        let outputs = self.module.run(inputs, self.model.inputs.form)?.map_err(|text| {
            Error::internal(format!("PyTorch execute failure: {}", self.model.explain(&text)))
        });
        if self.model.settings.cleans_cache {
            self.model.library.empty_cache();
        }
        outputs
    }

    fn outputs(&self, outputs: Vec<Output>, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        outputs::wanted(&self.model.config, &self.model.outputs, wanted, &outputs)
    }
}

pub(crate) struct SharedModel(pub Arc<TorchModel>);

impl Model for SharedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let module = self.0.module(place_of(spec))?;
        Ok(Box::new(TorchInstance { model: self.0.clone(), module }))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.0.has_places(instances)
    }
}
