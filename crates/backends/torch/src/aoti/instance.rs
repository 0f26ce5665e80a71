//! One executor of a package.

use std::sync::Arc;

use bytes::Bytes;
use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, Content, GroupRunner, Joined, ModelOutput, missing},
};
use galatea_config::{ModelConfig, TensorSpec};
use galatea_division_faults::DivisionFault;
use galatea_types::{AlignedBlock, Error, Result};

use super::{container::Container, model::PackageModel, tensor::Operand};
use crate::{
    outputs,
    torch::{Output, fixed},
};

/// Runs one batch after another on its container, which other instances may use too.
pub(super) struct PackageInstance {
    model: Arc<PackageModel>,
    container: Arc<Container>,
}

impl PackageInstance {
    pub fn new(model: Arc<PackageModel>, container: Arc<Container>) -> Self {
        Self { model, container }
    }

    fn check(&self, spec: &TensorSpec, position: usize, operand: &Operand) -> Result<()> {
        let checked = self.model.checks.check(position, operand.scalar_type, &operand.shape);
        checked.map_err(|text| {
            let model = self.model.config.name();
            Error::invalid_arg(format!("model '{model}': input '{}' {text}", spec.name))
        })
    }

    fn operand(&self, spec: &TensorSpec, joined: Joined<'_>) -> Result<Operand> {
        let Joined { shape, content, is_shared } = joined;
        let Content::Elements(data) = content else { return Err(missing(spec)) };
        let scalar_type = fixed(spec.data_type, &shape, &data)?;
        // The code may write to its inputs. What goes to a GPU is copied there.
        let data = if is_shared && self.container.is_on_cpu() { copy(&data) } else { data };
        Ok(Operand { scalar_type, shape, data })
    }
}

fn copy(data: &[u8]) -> Bytes {
    let mut block = AlignedBlock::with_capacity(data.len());
    block.extend_from_slice(data);
    block.into_bytes()
}

impl GroupRunner for PackageInstance {
    type Inputs = Vec<Operand>;
    type Outputs = Vec<Output>;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    /// In the order of the package.
    fn prepare(&self, joined: Vec<Option<Joined<'_>>>, _: &[usize]) -> Result<Vec<Operand>> {
        let specs = self.model.config.execution_inputs();
        let mut operands: Vec<Option<Operand>> = specs.iter().map(|_| None).collect();
        for ((spec, &position), joined) in specs.iter().zip(&self.model.inputs).zip(joined) {
            let operand = self.operand(spec, joined.ok_or_else(|| missing(spec))?)?;
            self.check(spec, position, &operand)?;
            if let Some(slot) = operands.get_mut(position) {
                *slot = Some(operand);
            }
        }
        let lacking = || specs.first().map_or_else(|| Error::internal("no inputs"), missing);
        operands.into_iter().collect::<Option<_>>().ok_or_else(lacking)
    }

    fn run(&self, operands: Vec<Operand>, _: &[usize]) -> Result<Vec<Output>> {
        // The code may write to its inputs: it is not run again where another run may have been at fault.
        let faults = self.model.library.faults();
        let outputs = faults.run_once(|| self.container.run(operands))?.map_err(|text| {
            Error::internal(format!(
                "Inductor model instance \"{}\" execution failure: {text}",
                self.model.config.name()
            ))
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

impl ModelInstance for PackageInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batching::execute(self, batch);
    }
}
