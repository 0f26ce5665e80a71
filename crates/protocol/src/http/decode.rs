//! An inference request: JSON header, binary tensors behind it, or raw bytes.

use std::collections::HashSet;

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{InferRequest, Tensor};

use super::{
    decode_error::{DecodeError, Result},
    field::read_at,
    input::{self, BinaryTail, Sources},
    json::{Cursor, for_each_element, for_each_member},
    limits::{self, Count},
    output, parameters, raw,
};
use crate::{
    answer_form::{AnswerForm, AnswerPlan},
    regions::Regions,
};

/// Translates the body of an inference request.
///
/// The first `header_length` bytes are JSON and the rest are the binary tensors; without the
/// `Inference-Header-Content-Length` header it is the length of the body. 0 makes the whole body the data of
/// the model's one input. Binary tensors share the memory of `body`; tensors in shared memory are those of
/// `regions`.
///
/// Fails with the status and text Triton has for the mistake, syntax errors before all others.
pub fn decode(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
    regions: &dyn Regions,
) -> galatea_types::Result<(InferRequest, AnswerPlan)> {
    let decoder = Decoder { model, version, regions, is_for_lines: false };
    Ok(decoder.decode(body, header_length)?)
}

/// What a request is read for.
pub(super) struct Decoder<'a> {
    pub model: &'a ModelConfig,
    pub version: Option<i64>,
    pub regions: &'a dyn Regions,
    /// The answer is a line of JSON per response: no place for binary tensors, but one for an empty final response.
    pub is_for_lines: bool,
}

impl Decoder<'_> {
    pub fn decode(&self, body: &Bytes, header_length: usize) -> Result<(InferRequest, AnswerPlan)> {
        let mut request = InferRequest::new(self.model.name().clone());
        request.model_version = self.version;
        let is_raw = header_length == 0;
        let default_form = AnswerForm::inline_or_binary(is_raw && !self.is_for_lines);
        let mut plan = AnswerPlan::new(default_form, self.model.has_batching());
        if is_raw {
            request.inputs.push(raw::read(body, self.model)?);
            return Ok((request, plan));
        }
        let out_of_range = DecodeError::HeaderOutOfRange { header_length, body_size: body.len() };
        let json = body.get(..header_length).ok_or(out_of_range)?;
        let mut sources = Sources {
            tail: BinaryTail { body, next: header_length },
            regions: self.regions,
            model: self.model,
        };
        let decoded = Header::scan(json, &mut sources)
            .and_then(|header| self.read_header(header, &mut request, &mut plan))
            .and_then(|()| sources.check_used_up());
        match decoded {
            Ok(()) => Ok((request, plan)),
            Err(error) => Err(Cursor::check_document(json).err().map_or(error, DecodeError::from)),
        }
    }

    /// In Triton's order, so that of several mistakes the same one is reported.
    fn read_header(
        &self,
        header: Header<'_>,
        request: &mut InferRequest,
        plan: &mut AnswerPlan,
    ) -> Result<()> {
        let cursor = header.cursor;
        if let Some(at) = header.id {
            let id = read_at(&cursor, at, "id", Cursor::expect_string)?;
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
        if let Some(at) = header.outputs {
            let count = Count::of_tensors("outputs", self.model.outputs().len(), self.model.name());
            output::read_all(&mut cursor.at(at), self.regions, count, request, plan)?;
        }
        Ok(())
    }
}

/// The members of the request object: the inputs decoded on the way, the rest by where its value starts.
struct Header<'a> {
    cursor: Cursor<'a>,
    id: Option<usize>,
    parameters: Option<usize>,
    outputs: Option<usize>,
    inputs: Option<Result<Vec<Tensor>>>,
}

impl<'a> Header<'a> {
    fn scan(json: &'a [u8], sources: &mut Sources<'_>) -> Result<Self> {
        let mut cursor = Cursor::new(json);
        let mut header = Self {
            cursor: cursor.clone(),
            id: None,
            parameters: None,
            outputs: None,
            inputs: None,
        };
        for_each_member(&mut cursor, |key, cursor| {
            let slot = match key {
                b"id" => &mut header.id,
                b"parameters" => &mut header.parameters,
                b"outputs" => &mut header.outputs,
                b"inputs" if header.inputs.is_none() => {
                    header.inputs = Some(scan_inputs(cursor, sources));
                    return Ok(());
                }
                _ => return cursor.skip_value(),
            };
            slot.get_or_insert(cursor.position());
            cursor.skip_value()
        })?;
        cursor.end_document()?;
        Ok(header)
    }
}

/// Refuses two inputs of one name.
fn check_unique(request: &InferRequest) -> Result<()> {
    if request.inputs.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(request.inputs.len());
    match request.inputs.iter().find(|input| !seen.insert(&*input.name)) {
        None => Ok(()),
        Some(input) => Err(DecodeError::DuplicateInput {
            prefix: request.message_prefix().to_string(),
            input: input.name.to_string(),
        }),
    }
}

/// Leaves the cursor behind the array. An error of one input is kept, so that what Triton checks first can
/// be reported first.
fn scan_inputs(cursor: &mut Cursor<'_>, sources: &mut Sources<'_>) -> Result<Vec<Tensor>> {
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
