//! One instance of a model.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

use galatea_backend::{
    InstanceSpec, Model, ModelInstance,
    batching::{Content, GroupRunner, JoinedInput, ModelOutput, other_type},
};
use galatea_config::ModelConfig;
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use crate::{
    bound_run::{BoundRun, BoundRuns, FinishedRun, RunInput},
    model::{Device, OnnxModel, no_instance},
    ort::{Value, ValueKind},
    sessions::SessionUse,
    signature::TensorBinding,
};

/// Runs one batch after another on the session shared by the instances of a device.
pub(crate) struct OnnxInstance {
    model: Arc<OnnxModel>,
    /// The sessions of the instance's device.
    sessions: SessionUse,
    bound: RefCell<BoundRuns>,
}

pub(crate) enum Inputs {
    Bound(BoundRun),
    Values(Values),
}

pub(crate) struct Values {
    /// Values, each with the number of its input.
    values: Vec<(usize, Value)>,
    /// The inputs, if the tensors of such runs may be kept.
    candidate: Option<Vec<RunInput>>,
}

pub(crate) enum Outputs {
    Bound(BoundRun),
    Values(Vec<Value>),
}

impl OnnxInstance {
    pub fn new(model: Arc<OnnxModel>, sessions: SessionUse) -> Self {
        let bound = RefCell::new(BoundRuns::new(!model.may_bind));
        Self { model, sessions, bound }
    }

    #[cfg(test)]
    pub fn kept_runs(&self) -> usize {
        self.bound.borrow().kept()
    }
}

impl GroupRunner for OnnxInstance {
    type Inputs = Inputs;
    type Outputs = Outputs;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    fn is_scalar(&self, input: usize) -> bool {
        self.model
            .inputs
            .get(input)
            .is_some_and(|binding| binding.info.dims.as_ref().is_some_and(|dims| dims.is_empty()))
    }

    /// Makes the inputs. An optional input that no request brought is left out, and the model uses its own value.
    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, wanted: &[usize]) -> Result<Inputs> {
        if let Some(run) = self.bound.borrow_mut().take(&joined, wanted) {
            return Ok(Inputs::Bound(run));
        }
        let candidate = self.bound.borrow().candidate(&joined);
        let given = joined.into_iter().zip(&self.model.inputs).enumerate();
        let values = given
            .filter_map(|(number, (joined, binding))| Some((number, joined?, binding)))
            .map(|(number, joined, binding)| Ok((number, self.value(binding, joined)?)))
            .collect::<Result<_>>()?;
        Ok(Inputs::Values(Values { values, candidate }))
    }

    /// Runs the model. The library does not return outputs that are not wanted.
    fn run(&self, inputs: Inputs, wanted: &[usize]) -> Result<Outputs> {
        match inputs {
            Inputs::Bound(run) => self.run_bound(run, wanted),
            Inputs::Values(values) => self.run_values(values, wanted),
        }
    }

    fn outputs(&self, outputs: Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let outputs = match outputs {
            Outputs::Bound(run) => {
                let outputs = run.copy_outputs();
                self.bound.borrow_mut().put_back(run);
                return Ok(outputs);
            }
            Outputs::Values(outputs) => outputs,
        };
        let bindings = wanted.iter().filter_map(|&number| self.model.outputs.get(number));
        bindings.zip(outputs).map(|(binding, value)| self.output(binding, value)).collect()
    }
}

impl OnnxInstance {
    /// Runs with kept tensors. If that fails, the same run without them shows whether the tensors or their content are at
    /// fault.
    fn run_bound(&self, mut run: BoundRun, wanted: &[usize]) -> Result<Outputs> {
        let model = &*self.model;
        let computed = self.sessions.place(|session, mode| run.compute(model, session, mode));
        let Err(error) = computed else { return Ok(Outputs::Bound(run)) };
        log::debug!("model '{}': retrying with new tensors: {error}", model.config.name());
        let outputs = self.compute(&self.values(&run.given())?, wanted);
        let mut bound = self.bound.borrow_mut();
        match outputs.is_ok() {
            true => bound.failed(),
            false => bound.put_back(run),
        }
        outputs.map(Outputs::Values)
    }

    fn run_values(&self, inputs: Values, wanted: &[usize]) -> Result<Outputs> {
        let outputs = self.compute(&inputs.values, wanted)?;
        if let Some(given) = inputs.candidate {
            let model = &*self.model;
            let finished = FinishedRun { inputs: &given, wanted, outputs: &outputs };
            self.bound.borrow_mut().consider(model, &finished, |run| {
                self.sessions.place(|session, mode| run.compute(model, session, mode))
            });
        }
        Ok(Outputs::Values(outputs))
    }

    fn compute(&self, inputs: &[(usize, Value)], wanted: &[usize]) -> Result<Vec<Value>> {
        let model = &*self.model;
        let inputs: Vec<_> = inputs
            .iter()
            .filter_map(|(number, value)| {
                Some((model.inputs.get(*number)?.info.c_name.as_c_str(), value))
            })
            .collect();
        let outputs: Vec<_> = wanted
            .iter()
            .filter_map(|&number| Some(model.outputs.get(number)?.info.c_name.as_c_str()))
            .collect();
        let options = &model.run_options;
        self.sessions.place(|session, mode| session.run(options, &inputs, &outputs, mode))
    }

    fn values(&self, given: &[RunInput]) -> Result<Vec<(usize, Value)>> {
        let library = &self.model.library;
        let value = |(number, shape, data): &RunInput| {
            let none = || Error::internal(format!("the model has no input {number}"));
            let data_type = self.model.inputs.get(*number).ok_or_else(none)?.spec.data_type;
            Ok((*number, Value::over(library, data.clone(), shape, data_type)?))
        };
        given.iter().map(value).collect()
    }

    fn value(&self, binding: &TensorBinding, joined: JoinedInput<'_>) -> Result<Value> {
        let library = &self.model.library;
        let over = |data| Value::over(library, data, &joined.shape, binding.spec.data_type);
        match joined.content {
            Content::Elements(data) => over(data),
            Content::OnDevice(data) => over(data.to_host()?),
            Content::Texts(texts) => Value::texts(library, &texts, &joined.shape),
        }
    }

    fn output(&self, binding: &TensorBinding, value: Value) -> Result<ModelOutput> {
        let spec = &binding.spec;
        if binding.info.kind == ValueKind::Maps {
            let (shape, bytes) = value.rows()?;
            return Ok(ModelOutput { shape, data: Buffer::from(bytes) });
        }
        let (data_type, shape) = value.describe()?;
        let Some(data_type) = data_type.filter(|&t| t == spec.data_type) else {
            return Err(other_type(&self.model.config, spec));
        };
        let data = bytes_of(value, data_type, &shape)?;
        Ok(ModelOutput { shape, data })
    }
}

fn bytes_of(value: Value, data_type: DataType, shape: &Shape) -> Result<Buffer> {
    let too_large = || Error::internal(format!("an output of shape {shape} cannot be addressed"));
    if data_type == DataType::Bytes {
        let count = shape.element_count().ok_or_else(too_large)?;
        return Ok(Buffer::from(value.to_length_prefixed(count)?));
    }
    value.into_buffer(shape.byte_size(data_type).ok_or_else(too_large)?)
}

pub(crate) struct SharedModel(pub Arc<OnnxModel>);

impl Model for SharedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let sessions = self.0.sessions.get(&Device::of(spec));
        let sessions = sessions.cloned().ok_or_else(|| no_instance(&self.0.config))?;
        Ok(Box::new(OnnxInstance::new(self.0.clone(), SessionUse::of(sessions))))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let devices: BTreeSet<Device> = instances.iter().map(Device::of).collect();
        devices.iter().eq(self.0.sessions.keys())
    }

    fn computes_on_any_thread(&self) -> bool {
        !self.0.has_providers && self.0.sessions.keys().eq([&Device::Cpu])
    }
}
