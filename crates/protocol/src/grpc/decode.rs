//! A request message and its tensors.

use std::{collections::HashSet, sync::Arc, vec};

use bytes::Bytes;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_proto::inference::{
    ModelInferRequest,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{Buffer, DataType, InferRequest, RequestedOutput, Shape, Tensor};

use super::{
    contents::{self, DeclaredInput},
    decode_error::{DecodeError, Result},
    parameters,
    region::RegionParameters,
};
use crate::{
    answer_form::{AnswerForm, AnswerPlan, PlannedOutput},
    model_version::parse_model_version,
    regions::Regions,
};

/// Reads a request for the model of `config`. Names that the model knows are shared with it.
///
/// Sizes are not checked against shapes here: the engine does that for every front end alike. Errors are
/// complete and carry Triton's texts. Tensors in shared memory are those of `regions`.
pub fn decode(
    message: ModelInferRequest,
    config: &ModelConfig,
    regions: &dyn Regions,
) -> galatea_types::Result<(InferRequest, AnswerPlan)> {
    Ok(read(message, config, regions)?)
}

fn read(
    message: ModelInferRequest,
    config: &ModelConfig,
    regions: &dyn Regions,
) -> Result<(InferRequest, AnswerPlan)> {
    let mut request = InferRequest::new(config.name().clone());
    request.model_version = parse_model_version(&message.model_version)?;
    request.id = message.id;
    let mut plan = AnswerPlan::new(AnswerForm::Binary, config.has_batching());
    plan.wants_empty_final = parameters::apply(&mut request, message.parameters)?;
    check_names(&request, &message.inputs)?;
    let sources = Sources::new(message.raw_input_contents, config.name(), regions);
    let (inputs, invalid) = read_inputs(message.inputs, sources, config)?;
    request.inputs = inputs;
    request.outputs.reserve_exact(message.outputs.len());
    for output in message.outputs {
        let name = known_name(config.output(&output.name), &output.name);
        let Some(form) = form_of(&output, regions)? else {
            request.outputs.push(RequestedOutput::plain(name));
            continue;
        };
        let planned = PlannedOutput { name, form };
        request.outputs.push(planned.requested());
        plan.outputs.push(planned);
    }
    match invalid {
        Some(name) => Err(invalid_data_type(&request, &name, config)),
        None => Ok((request, plan)),
    }
}

fn check_names(request: &InferRequest, inputs: &[InferInputTensor]) -> Result<()> {
    let mut names = HashSet::new();
    // The names of two inputs can be compared without a set; most models have no more.
    let twin = match inputs {
        [] | [_] => None,
        [a, b] => (a.name == b.name).then_some(b),
        _ => inputs.iter().find(|i| !names.insert(i.name.as_str())),
    };
    twin.map_or(Ok(()), |input| {
        let (prefix, input) = (request.message_prefix().to_string(), input.name.clone());
        Err(DecodeError::DuplicateInput { prefix, input })
    })
}

/// Where the data of inputs comes from when it is not in their typed contents.
struct Sources<'a> {
    raw: vec::IntoIter<Bytes>,
    has_raw: bool,
    model: &'a str,
    regions: &'a dyn Regions,
}

impl<'a> Sources<'a> {
    fn new(raw: Vec<Bytes>, model: &'a str, regions: &'a dyn Regions) -> Self {
        Self { has_raw: !raw.is_empty(), raw: raw.into_iter(), model, regions }
    }

    /// Of a shared-memory region, typed, or the next raw contents: those come in the order of the inputs.
    fn data_of(&mut self, input: &InferInputTensor, data_type: Option<DataType>) -> Result<Buffer> {
        let named = || (input.name.clone(), self.model.to_owned());
        if let Some(parameters) = RegionParameters::read(&input.name, &input.parameters)? {
            if input.contents.is_some() {
                let (input, model) = named();
                return Err(DecodeError::ContentsInRegion { input, model });
            }
            return Ok(parameters.span(self.regions)?.read()?);
        }
        match &input.contents {
            Some(_) if self.has_raw => {
                let (input, model) = named();
                Err(DecodeError::ContentsBesideRaw { input, model })
            }
            Some(contents) => {
                let declared = DeclaredInput { input: &input.name, model: self.model, data_type };
                contents::read(contents, &declared)
            }
            None => self.raw.next().map(Buffer::from).ok_or_else(|| {
                let (input, model) = (input.name.clone(), self.model.to_owned());
                DecodeError::NoData { input, model }
            }),
        }
    }
}

/// The tensors, and the name of the first one whose data type is none.
fn read_inputs(
    inputs: Vec<InferInputTensor>,
    mut sources: Sources<'_>,
    config: &ModelConfig,
) -> Result<(Vec<Tensor>, Option<String>)> {
    let mut invalid = None;
    let mut tensors = Vec::with_capacity(inputs.len());
    for input in inputs {
        let data_type = DataType::from_protocol_name(&input.datatype);
        let data = sources.data_of(&input, data_type)?;
        match data_type {
            Some(data_type) => tensors.push(Tensor {
                name: known_name(config.input(&input.name), &input.name),
                data_type,
                shape: Shape::from(input.shape),
                data,
            }),
            None => invalid = invalid.or(Some(input.name)),
        }
    }
    Ok((tensors, invalid))
}

/// The form an output's parameters ask for; `None` for the usual one.
fn form_of(
    output: &InferRequestedOutputTensor,
    regions: &dyn Regions,
) -> Result<Option<AnswerForm>> {
    let region = RegionParameters::read(&output.name, &output.parameters)?;
    let count = parameters::classification(&output.parameters)?;
    match (region, count) {
        (Some(_), Some(_)) => Err(DecodeError::ClassesInRegion),
        (Some(region), None) => Ok(Some(AnswerForm::Region(region.span(regions)?))),
        (None, count) => Ok(count.map(|count| AnswerForm::Classes { count, is_binary: true })),
    }
}

fn known_name(spec: Option<&TensorSpec>, name: &str) -> Arc<str> {
    spec.map_or_else(|| Arc::from(name), |spec| spec.name.clone())
}

/// The error that the engine has for a wrong data type, for one the vocabulary has no value for.
fn invalid_data_type(request: &InferRequest, input: &str, config: &ModelConfig) -> DecodeError {
    let (input, model) = (input.to_owned(), config.name().to_string());
    match config.input(&input) {
        None => DecodeError::UnexpectedInput { input, model },
        Some(spec) => {
            let prefix = request.message_prefix().to_string();
            DecodeError::InvalidDataType { prefix, input, model, expected: spec.data_type }
        }
    }
}
