//! One instance of a package.

use std::sync::Arc;

use galatea_backend::{
    InstanceSpec, Model, ModelInstance,
    batching::{Content, GroupRunner, JoinedInput, ModelOutput, missing},
};
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use super::{container::Container, model::PackageModel, tensor::Operand};
use crate::{
    model::place_of,
    outputs,
    torch::{Output, copy, fixed},
};

/// Runs one batch after another on its container, which other instances may use too.
pub(super) struct PackageInstance {
    model: Arc<PackageModel>,
    container: Arc<Container>,
}

impl PackageInstance {
    fn check(&self, spec: &TensorSpec, position: usize, operand: &Operand) -> Result<()> {
        let checked = self.model.checks.check(position, operand.scalar_type, &operand.shape);
        checked.map_err(|text| {
            let model = self.model.config.name();
            Error::invalid_arg(format!("model '{model}': input '{}' {text}", spec.name))
        })
    }

    fn operand(&self, spec: &TensorSpec, joined: JoinedInput<'_>) -> Result<Operand> {
        let JoinedInput { shape, content, is_shared } = joined;
        let Content::Elements(data) = content else { return Err(missing(spec)) };
        let scalar_type = fixed(spec.data_type, &shape, &data)?;
        // The code may write to its inputs. An input for a GPU is copied there anyway.
        let data = if is_shared && self.container.is_on_cpu() { copy(&data) } else { data };
        Ok(Operand { scalar_type, shape, data })
    }
}

impl GroupRunner for PackageInstance {
    type Inputs = Vec<Operand>;
    type Outputs = Vec<Output>;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    /// Makes the operands, in the order of the package.
    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Vec<Operand>> {
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
        // The code may write to its inputs, so a run is not repeated to see if another run caused its fault.
        let faults = &self.model.library.faults;
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

    fn outputs(&self, outputs: Vec<Output>, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        outputs::wanted(&self.model.config, &self.model.outputs, wanted, &outputs)
    }
}

pub(crate) struct SharedPackage(pub Arc<PackageModel>);

impl Model for SharedPackage {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let container = self.0.container(place_of(spec))?;
        Ok(Box::new(PackageInstance { model: self.0.clone(), container }))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.0.has_room(instances)
    }
}
