use std::sync::Arc;

use bytes::Bytes;
use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, Content, join, missing, tensors_of},
};
use galatea_config::TensorSpec;
use galatea_types::{AlignedBlock, Error, Result, Tensor};

use super::{container::Container, model::PackageModel, tensor::Operand};
use crate::{outputs, torch::fixed};

/// Runs one batch after another on its container, which other instances may use too.
pub(super) struct PackageInstance {
    model: Arc<PackageModel>,
    container: Arc<Container>,
}

impl PackageInstance {
    pub fn new(model: Arc<PackageModel>, container: Arc<Container>) -> Self {
        Self { model, container }
    }

    fn execute_part(&self, batch: &mut Batch, part: &[usize]) -> Result<()> {
        let operands = self.operands(batch, part)?;
        batch.mark_input_done();
        let outputs = self.container.run(operands).map_err(|text| {
            Error::internal(format!(
                "Inductor model instance \"{}\" execution failure: {text}",
                self.model.config.name()
            ))
        });
        if self.model.settings.cleans_cache {
            self.model.library.empty_cache();
        }
        batch.mark_output_started();
        let (config, positions) = (&self.model.config, &self.model.outputs);
        let shares = outputs::shares(config, positions, batch, part, &outputs?)?;
        batching::respond(batch, part, &shares);
        Ok(())
    }

    /// In the order of the package.
    fn operands(&self, batch: &Batch, part: &[usize]) -> Result<Vec<Operand>> {
        let specs = self.model.config.inputs();
        let mut operands: Vec<Option<Operand>> = specs.iter().map(|_| None).collect();
        for (spec, &position) in specs.iter().zip(&self.model.inputs) {
            let operand = self.operand(spec, &tensors_of(batch, part, spec)?)?;
            self.check(spec, position, &operand)?;
            if let Some(slot) = operands.get_mut(position) {
                *slot = Some(operand);
            }
        }
        let lacking = || specs.first().map_or_else(|| Error::internal("no inputs"), missing);
        operands.into_iter().collect::<Option<_>>().ok_or_else(lacking)
    }

    fn check(&self, spec: &TensorSpec, position: usize, operand: &Operand) -> Result<()> {
        let checked = self.model.checks.check(position, operand.scalar_type, &operand.shape);
        checked.map_err(|text| {
            let model = self.model.config.name();
            Error::invalid_arg(format!("model '{model}': input '{}' {text}", spec.name))
        })
    }

    fn operand(&self, spec: &TensorSpec, tensors: &[&Tensor]) -> Result<Operand> {
        let joined = join(spec, false, self.model.config.has_batching(), tensors)?;
        let Content::Elements(data) = joined.content else { return Err(missing(spec)) };
        let scalar_type = fixed(spec.data_type, &joined.shape, &data)?;
        // What goes to a GPU is copied there.
        let data = if self.container.is_on_cpu() { own(data, tensors) } else { data };
        Ok(Operand { scalar_type, shape: joined.shape, data })
    }
}

/// The request's own bytes copied; those that were joined are copies already.
fn own(data: Bytes, tensors: &[&Tensor]) -> Bytes {
    if tensors.iter().all(|t| t.host().is_ok_and(|bytes| bytes.as_ptr() != data.as_ptr())) {
        return data;
    }
    let mut block = AlignedBlock::with_capacity(data.len());
    block.extend_from_slice(&data);
    block.into_bytes()
}

impl ModelInstance for PackageInstance {
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
