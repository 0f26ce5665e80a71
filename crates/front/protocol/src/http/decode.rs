//! An inference request: a JSON header followed by binary tensors, or raw bytes.

use std::borrow::Cow;

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{InferRequest, Regions, Tensor, UnreadRequest};

use super::{
    advice,
    decode_error::{DecodeError, Result},
    field::Member,
    input::{self, BinaryTail, Sources},
    json::{JsonCursor, for_each_element, for_each_member},
    limits::{self, Count},
    output, parameters, raw,
};
use crate::answer_form::{AnswerForm, AnswerPlan, PlannedOutput};

/// Decodes the body of an inference request.
///
/// The first `header_length` bytes are JSON and the rest are the binary tensors. Without the
/// `Inference-Header-Content-Length` header it is the length of the body. With 0 the whole body is the data of the
/// model's only input. Binary tensors share the memory of `body`; tensors in shared memory are read from `regions`.
///
/// Fails with Triton's status and text for the mistake; syntax errors come before all others.
pub fn decode(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
    regions: &dyn Regions,
) -> galatea_types::Result<(InferRequest, AnswerPlan)> {
    let (request, plan) = decode_unread(body, header_length, model, version, regions)?;
    Ok((request.read()?, plan))
}

/// Like [`decode`], but does not read the tensors in shared memory.
pub(super) fn decode_unread(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
    regions: &dyn Regions,
) -> galatea_types::Result<(UnreadRequest, AnswerPlan)> {
    let decoder = Decoder { model, version, regions, is_for_lines: false };
    Ok(decoder.decode(body, header_length)?)
}

pub(super) struct Decoder<'a> {
    pub model: &'a ModelConfig,
    pub version: Option<i64>,
    pub regions: &'a dyn Regions,
    /// The answer is a line of JSON per response. It has no place for binary tensors, but one for an empty final response.
    pub is_for_lines: bool,
}

impl Decoder<'_> {
    pub fn decode(
        &self,
        body: &Bytes,
        header_length: usize,
    ) -> Result<(UnreadRequest, AnswerPlan)> {
        let mut request = InferRequest::new(self.model.name().clone());
        request.model_version = self.version;
        let is_raw = header_length == 0;
        let default_form = AnswerForm::inline_or_binary(is_raw && !self.is_for_lines);
        let mut plan = AnswerPlan::of_model(default_form, self.model);
        if is_raw {
            request.inputs.push(raw::read(body, self.model)?);
            return Ok((request.into(), plan));
        }
        let out_of_range = DecodeError::HeaderOutOfRange { header_length, body_size: body.len() };
        let json = body.get(..header_length).ok_or(out_of_range)?;
        let mut sources = Sources {
            tail: BinaryTail { body, next: header_length },
            regions: self.regions,
            model: self.model,
            unread: Vec::new(),
        };
        let decoded = self
            .scan(json, &mut sources)
            .and_then(|header| self.read_header(header, &mut request, &mut plan))
            .and_then(|()| sources.check_used_up());
        match decoded {
            Ok(()) => Ok((UnreadRequest::new(request, sources.unread), plan)),
            Err(error) => {
                let error = JsonCursor::check_document(json).err().map_or(error, DecodeError::from);
                let has_header_length = header_length < body.len();
                Err(advice::of_request(error, json, has_header_length, self.model))
            }
        }
    }

    fn scan<'a>(&self, json: &'a [u8], sources: &mut Sources<'_>) -> Result<Header<'a>> {
        let mut cursor = JsonCursor::new(json);
        let (mut id, mut outputs) = (Member::default(), Member::default());
        let (mut parameters, mut inputs) = (None, None);
        for_each_member(&mut cursor, |key, cursor| {
            match key {
                b"id" => return id.read(cursor, JsonCursor::expect_string),
                b"outputs" => return outputs.read(cursor, |cursor| self.read_outputs(cursor)),
                b"inputs" if inputs.is_none() => {
                    inputs = Some(scan_inputs(cursor, sources));
                    return Ok(());
                }
                b"parameters" => _ = parameters.get_or_insert(cursor.position()),
                _ => {}
            }
            cursor.skip_value()
        })?;
        cursor.end_document()?;
        Ok(Header { cursor, id, parameters, outputs, inputs })
    }

    /// Reads in Triton's order, so that of several mistakes the same one is reported.
    fn read_header(
        &self,
        header: Header<'_>,
        request: &mut InferRequest,
        plan: &mut AnswerPlan,
    ) -> Result<()> {
        let cursor = header.cursor;
        if let Some(id) = header.id.take_field(&cursor, "id", JsonCursor::expect_string)? {
            request.id = limits::id(&id)?;
        }
        if let Some(at) = header.parameters {
            parameters::read(&mut cursor.at(at), request, plan, self.is_for_lines)?;
        }
        request.inputs = match header.inputs {
            Some(inputs) => inputs?,
            None => return Err(DecodeError::MissingField("inputs")),
        };
        check_unique(request)?;
        if let Some(outputs) = header.outputs.take(&cursor, |cursor| self.read_outputs(cursor))? {
            output::check_unique(request, &outputs)?;
            request.outputs.extend(outputs.iter().map(|output| output.name.clone()));
            plan.outputs = outputs.into();
        }
        Ok(())
    }

    fn read_outputs(&self, cursor: &mut JsonCursor<'_>) -> Result<Vec<PlannedOutput>> {
        let count = Count::of_tensors("outputs", self.model.outputs().len(), self.model.name());
        output::read_all(cursor, self.regions, count)
            .map_err(|error| advice::of_outputs(error, self.model))
    }
}

/// The members of the request object. All are read in one pass, except the parameters, which change the request itself.
struct Header<'a> {
    cursor: JsonCursor<'a>,
    id: Member<Cow<'a, [u8]>>,
    /// The position of their value.
    parameters: Option<usize>,
    outputs: Member<Vec<PlannedOutput>>,
    inputs: Option<Result<Vec<Tensor>>>,
}

/// Refuses two inputs with the same name.
fn check_unique(request: &InferRequest) -> Result<()> {
    match limits::first_repeated(&request.inputs, |input| &input.name) {
        None => Ok(()),
        Some(input) => Err(DecodeError::DuplicateInput {
            prefix: request.message_prefix().to_string(),
            input: input.name.to_string(),
        }),
    }
}

/// Leaves the cursor after the array. An error of one input is kept, so that errors that Triton checks earlier are
/// reported first.
fn scan_inputs(cursor: &mut JsonCursor<'_>, sources: &mut Sources<'_>) -> Result<Vec<Tensor>> {
    let start = cursor.position();
    let mut inputs = Vec::with_capacity(4);
    let model = sources.model;
    let mut count = Count::of_tensors("inputs", model.inputs().len(), model.name());
    let array = cursor.expect_array().map_err(|e| DecodeError::from(e).in_field("inputs"));
    let result = array.and_then(|()| {
        for_each_element(cursor, |cursor| {
            count.next()?;
            inputs.push(input::decode(cursor, sources, &inputs)?);
            Ok(())
        })
    });
    if let Err(error) = result {
        *cursor = cursor.at(start);
        cursor.skip_value()?;
        return Err(error);
    }
    Ok(inputs)
}
