use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_proto::inference::{
    ModelInferRequest,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_types::{
    Buffer, DataType, Error, InferRequest, RequestedOutput, Result, Shape, Tensor,
};

use super::{
    contents::{self, Place},
    parameters, shared_memory,
};
use crate::model_version::parse_model_version;

/// A request, and what only the front end needs to know about it.
#[derive(Clone, Debug)]
pub struct DecodedRequest {
    pub request: InferRequest,
    /// A decoupled model that ends without a last answer shall be told by an empty one (G-58).
    pub wants_empty_final: bool,
}

/// Reads a request for the model of `config`. Names that the model knows are shared with it.
///
/// Sizes are not checked against shapes here: the engine does that for every front end alike. Errors are
/// complete and carry the texts of G-51 to G-53.
pub fn decode(message: ModelInferRequest, config: &ModelConfig) -> Result<DecodedRequest> {
    let mut request = InferRequest::new(config.name().clone());
    request.model_version = parse_model_version(&message.model_version)?;
    request.id = message.id;
    let wants_empty_final = parameters::apply(&mut request, message.parameters)?;
    check_names(&request, &message.inputs)?;
    let (inputs, invalid) = read_inputs(message.inputs, message.raw_input_contents, config)?;
    request.inputs = inputs;
    request.outputs =
        message.outputs.into_iter().map(|o| read_output(o, config)).collect::<Result<_>>()?;
    match invalid {
        Some(name) => Err(invalid_data_type(&request, &name, config)),
        None => Ok(DecodedRequest { request, wants_empty_final }),
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
        let (prefix, name) = (request.message_prefix(), &input.name);
        Err(Error::invalid_arg(format!("{prefix}input '{name}' already exists in request")))
    })
}

/// The tensors, and the name of the first one whose data type is none.
fn read_inputs(
    inputs: Vec<InferInputTensor>,
    raw: Vec<Bytes>,
    config: &ModelConfig,
) -> Result<(Vec<Tensor>, Option<String>)> {
    let has_raw = !raw.is_empty();
    let mut raw = raw.into_iter();
    let mut invalid = None;
    let mut tensors = Vec::with_capacity(inputs.len());
    for input in inputs {
        let data_type = DataType::from_protocol_name(&input.datatype);
        let data = input_data(&input, data_type, has_raw, &mut raw, config)?;
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

/// Typed contents, or the next raw ones: those come in the order of the inputs.
fn input_data(
    input: &InferInputTensor,
    data_type: Option<DataType>,
    has_raw: bool,
    raw: &mut impl Iterator<Item = Bytes>,
    config: &ModelConfig,
) -> Result<Buffer> {
    let (name, model) = (input.name.as_str(), config.name().as_ref());
    if let Some(region) = shared_memory::region_of(name, &input.parameters)? {
        return Err(match &input.contents {
            Some(_) => Error::invalid_arg(format!(
                "unexpected 'content' provided when using shared memory for input tensor '{name}' for model '{model}'"
            )),
            None => shared_memory::not_found(region),
        });
    }
    match &input.contents {
        Some(_) if has_raw => Err(Error::invalid_arg(format!(
            "contents field must not be specified when using raw_input_contents for '{name}' for model '{model}'"
        ))),
        Some(contents) => contents::read(contents, &Place { input: name, model, data_type }),
        None => raw.next().map(Buffer::from).ok_or_else(|| {
            Error::invalid_arg(format!(
                "unable to find data for input tensor '{name}' for model '{model}' in request."
            ))
        }),
    }
}

fn read_output(
    output: InferRequestedOutputTensor,
    config: &ModelConfig,
) -> Result<RequestedOutput> {
    let region = shared_memory::region_of(&output.name, &output.parameters)?;
    let classification = parameters::classification(&output.parameters)?;
    match (region, classification) {
        (Some(_), Some(_)) => Err(Error::invalid_arg(
            "output can't set both 'shared_memory_region' and 'classification'",
        )),
        (Some(region), None) => Err(shared_memory::not_found(region)),
        (None, classification) => {
            let name = known_name(config.output(&output.name), &output.name);
            Ok(RequestedOutput { name, classification })
        }
    }
}

fn known_name(spec: Option<&TensorSpec>, name: &str) -> Arc<str> {
    spec.map_or_else(|| Arc::from(name), |spec| spec.name.clone())
}

/// What the engine says about a wrong data type (H-70, H-71), for one the vocabulary has no value for.
fn invalid_data_type(request: &InferRequest, input: &str, config: &ModelConfig) -> Error {
    let model = config.name();
    Error::invalid_arg(match config.input(input) {
        None => format!("unexpected inference input '{input}' for model '{model}'"),
        Some(spec) => format!(
            "{}inference input '{input}' data-type is '<invalid>', but model '{model}' expects '{}'",
            request.message_prefix(),
            spec.data_type
        ),
    })
}
