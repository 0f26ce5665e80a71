//! One executor of a model.

use std::sync::Arc;

use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, Content, GroupRunner, Joined, ModelOutput},
};
use galatea_config::ModelConfig;
use galatea_division_faults::DivisionFault;
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use crate::{binding::TensorBinding, model::OnnxModel, ort::Value, sessions::SessionUse};

/// Runs one batch after another on the session shared by the instances of a device.
pub(crate) struct OnnxInstance {
    model: Arc<OnnxModel>,
    /// Those of the device this instance is for.
    sessions: SessionUse,
}

impl OnnxInstance {
    pub fn new(model: Arc<OnnxModel>, sessions: SessionUse) -> Self {
        Self { model, sessions }
    }
}

impl GroupRunner for OnnxInstance {
    /// Each with the number of its input.
    type Inputs = Vec<(usize, Value)>;
    type Outputs = Vec<Value>;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    fn is_scalar(&self, input: usize) -> bool {
        self.model.inputs.get(input).is_some_and(|binding| binding.info.dims.is_empty())
    }

    /// An optional input that no request brought is left out: the model's own value holds.
    fn prepare(&self, joined: Vec<Option<Joined<'_>>>) -> Result<Self::Inputs> {
        let given = joined.into_iter().zip(&self.model.inputs).enumerate();
        given
            .filter_map(|(number, (joined, binding))| Some((number, joined?, binding)))
            .map(|(number, joined, binding)| Ok((number, self.value(binding, joined)?)))
            .collect()
    }

    /// The library keeps outputs that are not wanted to itself.
    fn run(&self, inputs: Self::Inputs, wanted: &[usize]) -> Result<Vec<Value>> {
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

    fn is_of_one_request(&self, error: &Error) -> bool {
        DivisionFault::is_cause_of(error)
    }

    fn outputs(&self, outputs: Vec<Value>, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let bindings = wanted.iter().filter_map(|&number| self.model.outputs.get(number));
        bindings.zip(outputs).map(|(binding, value)| self.output(binding, value)).collect()
    }
}

impl OnnxInstance {
    fn value(&self, binding: &TensorBinding, joined: Joined<'_>) -> Result<Value> {
        let library = &self.model.library;
        match joined.content {
            Content::Elements(data) => {
                Value::over(library, data, &joined.shape, binding.spec.data_type)
            }
            Content::Texts(texts) => Value::texts(library, &texts, &joined.shape),
        }
    }

    fn output(&self, binding: &TensorBinding, value: Value) -> Result<ModelOutput> {
        let spec = &binding.spec;
        let (data_type, shape) = value.describe()?;
        let Some(data_type) = data_type.filter(|&t| t == spec.data_type) else {
            return Err(Error::internal(format!(
                "output '{}' of model '{}' has another datatype than the configured {}",
                spec.name,
                self.model.config.name(),
                spec.data_type
            )));
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

impl ModelInstance for OnnxInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batching::execute(self, batch);
    }
}
