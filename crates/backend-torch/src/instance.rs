use std::sync::Arc;

use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, join, missing, tensors_of},
};
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

    fn execute_part(&self, batch: &mut Batch, part: &[usize]) -> Result<()> {
        let inputs = self.inputs(batch, part)?;
        batch.mark_input_done();
        let outputs = self.run(inputs)?;
        batch.mark_output_started();
        let (config, positions) = (&self.model.config, &self.model.outputs);
        let shares = outputs::shares(config, positions, batch, part, &outputs)?;
        batching::respond(batch, part, &shares);
        Ok(())
    }

    /// In the order of the arguments. One that nobody brought must be optional, and the last.
    fn inputs(&self, batch: &Batch, part: &[usize]) -> Result<Vec<Input>> {
        let config = &self.model.config;
        let mut slots: Vec<Option<Input>> = config.inputs().iter().map(|_| None).collect();
        for (spec, &position) in config.inputs().iter().zip(&self.model.inputs.positions) {
            let tensors = tensors_of(batch, part, spec)?;
            if tensors.is_empty() {
                continue;
            }
            let joined = join(spec, false, config.has_batching(), &tensors)?;
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

    fn without_gaps(&self, mut slots: Vec<Option<Input>>) -> Result<Vec<Input>> {
        while slots.last().is_some_and(Option::is_none) {
            slots.pop();
        }
        let gap = slots.iter().position(Option::is_none);
        let lacking = gap.and_then(|gap| {
            let index = self.model.inputs.positions.iter().position(|&p| p == gap)?;
            self.model.config.inputs().get(index)
        });
        lacking.map_or_else(|| Ok(slots.into_iter().flatten().collect()), |s| Err(missing(s)))
    }

    fn run(&self, inputs: Vec<Input>) -> Result<Vec<Output>> {
        let outputs = self.module.run(inputs, self.model.inputs.form).map_err(|text| {
            Error::internal(format!("PyTorch execute failure: {}", self.model.explain(&text)))
        });
        if self.model.settings.cleans_cache {
            self.model.library.empty_cache();
        }
        outputs
    }
}

impl ModelInstance for TorchInstance {
    fn execute(&mut self, batch: &mut Batch) {
        let config = self.model.config.clone();
        let parts = batching::parts(batch, config.has_batching(), |request| {
            batching::check(config.inputs(), request)
        });
        for part in parts {
            if let Err(error) = self.execute_part(batch, &part) {
                batching::fail(batch, &part, &error);
            }
        }
    }
}
