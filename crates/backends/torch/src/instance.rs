//! One executor of a TorchScript model.

use std::sync::Arc;

use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, GroupRunner, Joined, ModelOutput, missing},
};
use galatea_config::ModelConfig;
use galatea_division_faults::DivisionFault;
use galatea_types::{Error, Result};

use crate::{
    model::TorchModel,
    outputs,
    torch::{Form, Input, Module, Output},
};

/// Runs one batch after another on its module, which other instances may use too.
pub(crate) struct TorchInstance {
    model: Arc<TorchModel>,
    module: Arc<Module>,
}

impl TorchInstance {
    pub fn new(model: Arc<TorchModel>, module: Arc<Module>) -> Self {
        Self { model, module }
    }

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

    /// In the order of the arguments. One that nobody brought must be optional, and the last.
    fn prepare(&self, joined: Vec<Option<Joined<'_>>>, _: &[usize]) -> Result<Vec<Input>> {
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
            Form::Dictionary => Ok(slots.into_iter().flatten().collect()),
            Form::Positional => self.without_gaps(slots),
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

    fn is_of_one_request(&self, error: &Error) -> bool {
        DivisionFault::is_cause_of(error)
    }

    fn outputs(&self, outputs: Vec<Output>, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        outputs::wanted(&self.model.config, &self.model.outputs, wanted, &outputs)
    }
}

impl ModelInstance for TorchInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batching::execute(self, batch);
    }
}
