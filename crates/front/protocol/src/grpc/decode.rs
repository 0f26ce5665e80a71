//! Decodes a request message and its tensors.

use std::{collections::HashSet, sync::Arc, vec};

use bytes::Bytes;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Buffer, DataType, InferRequest, Regions, Tensor, UnreadInput, UnreadRequest};

use super::{
    contents::{self, DeclaredInput},
    decode_error::{DecodeError, Result},
    fields::Parsed,
    input::{InputFields, OutputFields},
    message::RequestMessage,
    parameters::{self, ParameterMap, entry},
    region::RegionParameters,
};
use crate::{
    answer_form::{AnswerForm, AnswerPlan, PlannedOutput},
    model_version::parse_model_version,
};

/// Decodes a request for the model of `config`. Names that the model knows are shared with it.
///
/// The engine checks sizes against shapes for every front end, so this does not. Errors are complete and have Triton's
/// texts. Tensors in shared memory are read from `regions`.
pub fn decode(
    message: RequestMessage,
    config: &ModelConfig,
    regions: &dyn Regions,
) -> galatea_types::Result<(InferRequest, AnswerPlan)> {
    let (request, plan) = decode_unread(message, config, regions)?;
    Ok((request.read()?, plan))
}

/// Like [`decode`], but does not read the tensors in shared memory.
pub fn decode_unread(
    message: RequestMessage,
    config: &ModelConfig,
    regions: &dyn Regions,
) -> galatea_types::Result<(UnreadRequest, AnswerPlan)> {
    Ok(read(message, config, regions)?)
}

fn read(
    message: RequestMessage,
    config: &ModelConfig,
    regions: &dyn Regions,
) -> Result<(UnreadRequest, AnswerPlan)> {
    let mut request = InferRequest::new(config.name().clone());
    request.model_version = parse_model_version(message.model_version())?;
    request.id = message.id().to_owned();
    let mut plan = AnswerPlan::of_model(AnswerForm::Binary, config);
    let parameters = message.parameters.iter().map(|bytes| entry(bytes));
    let parameters = ParameterMap::of(parameters.collect::<Parsed<Vec<_>>>()?);
    plan.wants_empty_final = parameters::apply(&mut request, &parameters)?;
    check_counts(&request, &message, config)?;
    let inputs = message.inputs.iter().map(|bytes| InputFields::parse(bytes));
    let inputs = inputs.collect::<Parsed<Vec<_>>>()?;
    check_names(&request, &inputs)?;
    let mut sources = Sources::new(message.raw_input_contents, config, regions);
    let (tensors, invalid) = read_inputs(&inputs, &mut sources, config)?;
    request.inputs = tensors;
    request.outputs.reserve_exact(message.outputs.len());
    let mut asked = HashSet::new();
    let mut planned_outputs = Vec::new();
    for output in &message.outputs {
        let output = OutputFields::parse(output)?;
        if message.outputs.len() > 1 && !asked.insert(output.name) {
            let (prefix, output) = (request.message_prefix(), output.name.to_owned());
            return Err(DecodeError::DuplicateOutput { prefix, output });
        }
        let name = known_name(config.output(output.name), output.name);
        request.outputs.push(name.clone());
        if let Some(form) = form_of(&output, regions)? {
            planned_outputs.push(PlannedOutput { name, form });
        }
    }
    plan.outputs = planned_outputs.into();
    match invalid {
        Some(name) => Err(invalid_data_type(&request, name, config)),
        None => Ok((UnreadRequest::new(request, sources.unread), plan)),
    }
}

/// The surplus of inputs or outputs that is still decoded. The engine finds a surplus later and words the error; a
/// larger one is refused here to save the work.
const MAX_SURPLUS: usize = 64;

fn check_counts(
    request: &InferRequest,
    message: &RequestMessage,
    config: &ModelConfig,
) -> Result<()> {
    for (kind, given, expected) in [
        ("inputs", message.inputs.len(), config.inputs().len()),
        ("outputs", message.outputs.len(), config.outputs().len()),
    ] {
        if given > expected.saturating_add(MAX_SURPLUS) {
            let (prefix, model) = (request.message_prefix().to_string(), config.name().to_string());
            return Err(DecodeError::TooMany { prefix, kind, expected, given, model });
        }
    }
    Ok(())
}

fn check_names(request: &InferRequest, inputs: &[InputFields<'_>]) -> Result<()> {
    let mut names = HashSet::new();
    // The names of two inputs can be compared without a set; most models have no more.
    let twin = match inputs {
        [] | [_] => None,
        [a, b] => (a.name == b.name).then_some(b),
        _ => inputs.iter().find(|i| !names.insert(i.name)),
    };
    twin.map_or(Ok(()), |input| {
        let (prefix, input) = (request.message_prefix().to_string(), input.name.to_owned());
        Err(DecodeError::DuplicateInput { prefix, input })
    })
}

/// The sources of inputs that are not in their typed contents.
struct Sources<'a> {
    raw: vec::IntoIter<Bytes>,
    has_raw: bool,
    model: &'a ModelConfig,
    regions: &'a dyn Regions,
    /// The inputs in regions.
    unread: Vec<UnreadInput>,
}

impl<'a> Sources<'a> {
    fn new(raw: Vec<Bytes>, model: &'a ModelConfig, regions: &'a dyn Regions) -> Self {
        let has_raw = !raw.is_empty();
        Self { has_raw, raw: raw.into_iter(), model, regions, unread: Vec::new() }
    }

    /// Returns the data of the input at `index`: from its typed contents, or the next raw contents, which have the order
    /// of the inputs. Its region is read later.
    fn data_of(
        &mut self,
        index: usize,
        input: &InputFields<'_>,
        data_type: Option<DataType>,
    ) -> Result<Buffer> {
        let named = || (input.name.to_owned(), self.model.name().to_string());
        if let Some(parameters) = RegionParameters::read(input.name, &input.parameters()?)? {
            if input.contents.is_some() {
                let (input, model) = named();
                return Err(DecodeError::ContentsInRegion { input, model });
            }
            self.unread.push(UnreadInput { index, span: parameters.span(self.regions)? });
            return Ok(Buffer::default());
        }
        match &input.contents {
            Some(_) if self.has_raw => {
                let (input, model) = named();
                Err(DecodeError::ContentsBesideRaw { input, model })
            }
            Some(contents) => {
                let declared = DeclaredInput { input: input.name, model: self.model, data_type };
                contents::read(input.contents_parts(), contents, &declared)
            }
            None => self.raw.next().map(Buffer::from).ok_or_else(|| {
                let (input, model) = (input.name.to_owned(), self.model.name().to_string());
                DecodeError::NoData { input, model }
            }),
        }
    }
}

/// Returns the tensors, and the name of the first one with an invalid data type.
fn read_inputs<'m>(
    inputs: &[InputFields<'m>],
    sources: &mut Sources<'_>,
    config: &ModelConfig,
) -> Result<(Vec<Tensor>, Option<&'m str>)> {
    let mut invalid = None;
    let mut tensors = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let data_type = input.data_type();
        let data = sources.data_of(index, input, data_type)?;
        match data_type {
            Some(data_type) => tensors.push(Tensor {
                name: known_name(config.input(input.name), input.name),
                data_type,
                shape: input.shape()?,
                data,
            }),
            None => invalid = invalid.or(Some(input.name)),
        }
    }
    Ok((tensors, invalid))
}

/// Returns the form that an output's parameters ask for; `None` for the usual one.
fn form_of(output: &OutputFields<'_>, regions: &dyn Regions) -> Result<Option<AnswerForm>> {
    let parameters = output.parameters()?;
    let region = RegionParameters::read(output.name, &parameters)?;
    let count = parameters::classification(&parameters)?;
    match (region, count) {
        (Some(_), Some(_)) => Err(DecodeError::ClassesInRegion),
        (Some(region), None) => Ok(Some(AnswerForm::Region(region.span(regions)?))),
        (None, count) => Ok(count.map(|count| AnswerForm::Classes { count, is_binary: true })),
    }
}

fn known_name(spec: Option<&TensorSpec>, name: &str) -> Arc<str> {
    spec.map_or_else(|| Arc::from(name), |spec| spec.name.clone())
}

/// Returns the engine's error for a wrong data type, for a name that is not a data type.
fn invalid_data_type(request: &InferRequest, input: &str, config: &ModelConfig) -> DecodeError {
    let (input, model) = (input.to_owned(), config.name().to_string());
    match config.input(&input) {
        None => {
            let known = galatea_config::names_of(config.inputs());
            DecodeError::UnexpectedInput { input, model, known }
        }
        Some(spec) => {
            let prefix = request.message_prefix().to_string();
            DecodeError::InvalidDataType { prefix, input, model, expected: spec.data_type }
        }
    }
}
