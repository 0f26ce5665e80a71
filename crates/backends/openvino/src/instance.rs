//! One instance of a model.

use std::{cell::RefCell, sync::Arc};

use bytes::Bytes;
use galatea_backend::{
    InstanceSpec, Model, ModelInstance,
    batching::{Content, GroupRunner, JoinedInput, ModelOutput, missing, other_type},
};
use galatea_config::{InstanceKind, ModelConfig};
use galatea_types::{Buffer, DataType, Error, Result, Shape};

use crate::{
    model::OpenVinoModel,
    narrowing,
    openvino::{InferRequest, Tensor},
    padding,
    signature::Binding,
};

/// Most bytes of inputs and outputs that are copied into and out of the infer request's own memory. Giving it other memory
/// would cost more for them (`docs/adr/0025-openvino-streams.md`).
const COPIED_BYTES: usize = 64 << 10;

/// An input in memory of the infer request: its shape, and its tensor.
type OwnInput = Option<(Shape, Tensor)>;

/// Runs one batch after another on its own infer request. All instances share the model.
pub(crate) struct OpenVinoInstance {
    model: Arc<OpenVinoModel>,
    request: InferRequest,
    /// For each output: shape and type if the shape is fixed and too large to be copied.
    large_outputs: Vec<Option<(Vec<i64>, DataType)>>,
    /// For each input of the model: its own memory.
    own_inputs: RefCell<Vec<OwnInput>>,
}

/// Inputs in the order of the model.
pub(crate) struct Inputs {
    all: Vec<Input>,
    /// Number of items in the requested batch. The model may compute a larger one.
    items: Option<i64>,
}

/// The content for an input.
enum Input {
    /// A tensor to set without a copy.
    Tensor(Tensor),
    /// Data to copy.
    Small { data: Bytes, shape: Shape, data_type: DataType },
}

/// The requested outputs: each tensor, and true if it is passed on without a copy.
pub(crate) struct Outputs {
    tensors: Vec<(Tensor, bool)>,
    items: Option<i64>,
    /// Kept because a model may pass an input's memory through as an output.
    _inputs: Vec<Input>,
}

impl OpenVinoInstance {
    fn new(model: Arc<OpenVinoModel>) -> Result<Self> {
        let request = model.compiled.new_request()?;
        let large_outputs = model.all_outputs.iter().map(large).collect();
        let own_inputs = RefCell::new(model.inputs.iter().map(|_| None).collect());
        Ok(Self { model, request, large_outputs, own_inputs })
    }

    fn input(&self, binding: &Binding, joined: JoinedInput<'_>) -> Result<Input> {
        let library = &self.model.library;
        let data_type = binding.spec.data_type;
        let JoinedInput { shape, content, .. } = joined;
        if let Content::Elements(data) = &content {
            narrowing::check(&binding.spec, data)?;
        }
        match content {
            Content::Elements(data) if data.len() <= COPIED_BYTES => {
                Ok(Input::Small { data, shape, data_type })
            }
            Content::Elements(data) => {
                Tensor::over(library, data, &shape, data_type).map(Input::Tensor)
            }
            Content::OnDevice(data) => {
                Tensor::over(library, data.to_host()?, &shape, data_type).map(Input::Tensor)
            }
            Content::Texts(texts) => Tensor::of_texts(library, &texts, &shape).map(Input::Tensor),
        }
    }

    fn place_inputs(&self, inputs: &[Input]) -> Result<()> {
        let mut own = self.own_inputs.borrow_mut();
        let mut places = inputs.iter().zip(own.iter_mut()).enumerate();
        places.try_for_each(|(index, (input, own))| self.place_input(index, input, own))
    }

    fn place_input(&self, index: usize, input: &Input, own: &mut OwnInput) -> Result<()> {
        match (input, own) {
            (Input::Tensor(tensor), own) => {
                *own = None;
                self.request.set_input(index, tensor)
            }
            (Input::Small { data, shape, .. }, Some((known, tensor))) if known == shape => {
                tensor.fill(data)
            }
            (Input::Small { data, shape, data_type }, own) => {
                *own = None;
                let mut tensor = Tensor::with_room(&self.model.library, shape, *data_type)?;
                tensor.fill(data)?;
                self.request.set_input(index, &tensor)?;
                *own = Some((shape.clone(), tensor));
                Ok(())
            }
        }
    }

    /// Gives each output that is passed on without a copy new memory before each run.
    fn place_outputs(&self) -> Result<Vec<Option<Tensor>>> {
        let placed = |(index, large): (usize, &Option<(Vec<i64>, DataType)>)| {
            let Some((dims, data_type)) = large else { return Ok(None) };
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
            return Err(other_type(&self.model.config, spec));
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

fn large(info: &crate::openvino::TensorInfo) -> Option<(Vec<i64>, DataType)> {
    let (dims, data_type) = (info.dims.clone()?, info.data_type?);
    let is_fixed = dims.iter().all(|&dim| dim >= 0);
    let byte_size = Shape::from(&*dims).byte_size(data_type).filter(|_| is_fixed)?;
    (byte_size > COPIED_BYTES).then_some((dims, data_type))
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

    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Inputs> {
        let model = &*self.model;
        let mut items = None;
        let mut all: Vec<Option<Input>> = model.inputs.iter().map(|_| None).collect();
        for (joined, binding) in joined.into_iter().zip(&model.inputs) {
            let mut joined = joined.ok_or_else(|| missing(&binding.spec))?;
            if model.settings.has_fixed_batch {
                items = joined.shape.first().copied();
                joined = padding::fill_batch(joined, &binding.spec, model)?;
            }
            let input = self.input(binding, joined)?;
            if let Some(place) = all.get_mut(binding.index) {
                *place = Some(input);
            }
        }
        let all: Option<Vec<Input>> = all.into_iter().collect();
        let all = all.ok_or_else(|| Error::internal("an input of the model is not set"))?;
        Ok(Inputs { all, items })
    }

    fn run(&self, inputs: Inputs, wanted: &[usize]) -> Result<Outputs> {
        let mut placed = self.place_outputs()?;
        self.place_inputs(&inputs.all)?;
        self.request.infer()?;
        let output = |&number: &usize| {
            let none = || Error::internal("no such output");
            let index = self.model.outputs.get(number).ok_or_else(none)?.index;
            match placed.get_mut(index).and_then(Option::take) {
                Some(own) => Ok((own, true)),
                None => Ok((self.request.output(index)?, false)),
            }
        };
        let tensors = wanted.iter().map(output).collect::<Result<_>>()?;
        Ok(Outputs { tensors, items: inputs.items, _inputs: inputs.all })
    }

    fn outputs(&self, outputs: Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let Outputs { tensors, items, _inputs } = outputs;
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

pub(crate) struct SharedModel(pub Arc<OpenVinoModel>);

impl Model for SharedModel {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(OpenVinoInstance::new(self.0.clone())?))
    }

    /// Returns true if the streams were made for this number of instances.
    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let model = &self.0;
        let depends = model.settings.streams.is_none() && model.settings.hint.is_none();
        let is_number = u32::try_from(instances.len()).is_ok_and(|n| n == model.instances);
        let is_cpu = instances.iter().all(|spec| spec.kind != InstanceKind::Gpu);
        is_cpu && (is_number || !depends)
    }
}
