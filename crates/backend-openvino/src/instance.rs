//! One executor of a model.

use std::sync::Arc;

use galatea_backend::{
    Batch, ModelInstance,
    batching::{self, Content, GroupRunner, Joined, ModelOutput, missing},
};
use galatea_config::ModelConfig;
use galatea_division_faults::DivisionFault;
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use crate::{
    model::OpenVinoModel,
    openvino::{InferRequest, Tensor},
    padding,
    signature::Binding,
};

/// Outputs up to this size are copied out of the request's own memory: giving it other memory would cost more.
const COPIED_BYTES: usize = 64 << 10;

/// Runs one batch after another on a request of its own of the model that all instances share.
pub(crate) struct OpenVinoInstance {
    model: Arc<OpenVinoModel>,
    request: InferRequest,
    /// Of each output of the model: its bytes, where it always has the same and so many that they are not copied.
    large_outputs: Vec<Option<(Vec<i64>, DataType, usize)>>,
}

/// In the order of the model.
pub(crate) struct Inputs {
    tensors: Vec<Tensor>,
    /// Of the batch that was asked for: the model may compute a larger one.
    items: Option<i64>,
}

/// Of the wanted outputs: the tensor, and whether it is handed on as it is.
pub(crate) struct Outputs {
    tensors: Vec<(Tensor, bool)>,
    items: Option<i64>,
}

impl OpenVinoInstance {
    pub fn new(model: Arc<OpenVinoModel>) -> Result<Self> {
        let request = model.compiled.new_request()?;
        let large_outputs = model.all_outputs.iter().map(large).collect();
        Ok(Self { model, request, large_outputs })
    }

    fn tensor(&self, binding: &Binding, joined: Joined<'_>) -> Result<Tensor> {
        let library = &self.model.library;
        let Joined { shape, content, .. } = joined;
        match content {
            Content::Elements(data) => Tensor::over(library, data, &shape, binding.spec.data_type),
            Content::Texts(texts) => Tensor::of_texts(library, &texts, &shape),
        }
    }

    /// What is handed on gets new memory before each run.
    fn place_outputs(&self) -> Result<Vec<Option<Tensor>>> {
        let placed = |(index, large): (usize, &Option<(Vec<i64>, DataType, usize)>)| {
            let Some((dims, data_type, _)) = large else { return Ok(None) };
            let tensor = Tensor::with_room(&self.model.library, dims, *data_type)?;
            self.request.set_output(index, &tensor)?;
            Ok(Some(tensor))
        };
        self.large_outputs.iter().enumerate().map(placed).collect()
    }

    fn output(&self, binding: &Binding, tensor: Tensor, is_own: bool) -> Result<ModelOutput> {
        let (data_type, shape) = tensor.describe()?;
        let spec = &binding.spec;
        let name = || format!("output '{}' of model '{}'", spec.name, self.model.config.name());
        let Some(data_type) = data_type.filter(|&found| found == spec.data_type) else {
            return Err(Error::internal(format!(
                "{} has another datatype than the configured {}",
                name(),
                spec.data_type
            )));
        };
        let too_large = || Error::internal(format!("{} has a shape of {shape}, too large", name()));
        let data = match data_type {
            DataType::Bytes => Buffer::from(
                tensor.to_length_prefixed(shape.element_count().ok_or_else(too_large)?)?,
            ),
            _ => {
                let byte_size = shape.byte_size(data_type).ok_or_else(too_large)?;
                if is_own { tensor.into_buffer(byte_size)? } else { tensor.copied(byte_size)? }
            }
        };
        Ok(ModelOutput { shape, data })
    }
}

fn large(info: &crate::openvino::TensorInfo) -> Option<(Vec<i64>, DataType, usize)> {
    let (dims, data_type) = (info.dims.clone()?, info.data_type?);
    let is_fixed = dims.iter().all(|&dim| dim >= 0);
    let byte_size = Shape::from(&*dims).byte_size(data_type).filter(|_| is_fixed)?;
    (byte_size > COPIED_BYTES).then_some((dims, data_type, byte_size))
}

impl GroupRunner for OpenVinoInstance {
    type Inputs = Inputs;
    type Outputs = Outputs;

    fn config(&self) -> &ModelConfig {
        &self.model.config
    }

    fn is_scalar(&self, input: usize) -> bool {
        let binding = self.model.inputs.get(input);
        binding.is_some_and(|binding| binding.info.dims.as_ref().is_some_and(Vec::is_empty))
    }

    fn prepare(&self, joined: Vec<Option<Joined<'_>>>) -> Result<Inputs> {
        let model = &*self.model;
        let mut items = None;
        let mut tensors: Vec<Option<Tensor>> = model.inputs.iter().map(|_| None).collect();
        for (joined, binding) in joined.into_iter().zip(&model.inputs) {
            let mut joined = joined.ok_or_else(|| missing(&binding.spec))?;
            if model.settings.has_fixed_batch {
                items = joined.shape.first().copied();
                joined = padding::fill_batch(joined, &binding.spec, model)?;
            }
            let tensor = self.tensor(binding, joined)?;
            if let Some(place) = tensors.get_mut(binding.index) {
                *place = Some(tensor);
            }
        }
        let tensors: Option<Vec<Tensor>> = tensors.into_iter().collect();
        let tensors = tensors.ok_or_else(|| Error::internal("an input of the model is not set"))?;
        Ok(Inputs { tensors, items })
    }

    fn run(&self, inputs: Inputs, wanted: &[usize]) -> Result<Outputs> {
        let mut placed = self.place_outputs()?;
        self.request.infer(&inputs.tensors)?;
        let output = |&number: &usize| {
            let none = || Error::internal("no such output");
            let index = self.model.outputs.get(number).ok_or_else(none)?.index;
            match placed.get_mut(index).and_then(Option::take) {
                Some(own) => Ok((own, true)),
                None => Ok((self.request.output(index)?, false)),
            }
        };
        let tensors = wanted.iter().map(output).collect::<Result<_>>()?;
        Ok(Outputs { tensors, items: inputs.items })
    }

    fn is_of_one_request(&self, error: &Error) -> bool {
        DivisionFault::is_cause_of(error)
    }

    fn outputs(&self, outputs: Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let Outputs { tensors, items } = outputs;
        let bindings = wanted.iter().filter_map(|&number| self.model.outputs.get(number));
        bindings
            .zip(tensors)
            .map(|(binding, (tensor, is_own))| {
                let output = self.output(binding, tensor, is_own)?;
                match items {
                    Some(items) => padding::without_filling(output, items, binding.spec.data_type),
                    None => Ok(output),
                }
            })
            .collect()
    }
}

impl ModelInstance for OpenVinoInstance {
    fn execute(&mut self, batch: &mut Batch) {
        batching::execute(self, batch);
    }
}
