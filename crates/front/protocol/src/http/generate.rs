//! The generate extension: one flat JSON object as input, flat JSON objects as output.

use std::collections::{BTreeMap, HashSet};

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{
    DataType, InferRequest, InferResponse, ParameterValue, Shape, Tensor, byte_strings,
};

use super::{
    advice,
    decode_error::{DecodeError, Result},
    encode::{push_data, push_numbers, push_parameter, push_string},
    field,
    json::{JsonCursor, Kind, for_each_element, for_each_member},
    limits::{self, Count, MAX_PARAMETERS},
    number_text::write_float,
    parameters::custom_value,
    tensor_data::{self, Elements, ExpectedData},
};

/// The only key that names neither a tensor nor a parameter: an object with more keys.
const NESTED: &str = "parameters";

/// Decodes the body of a generate request. A key that names an input of `model` has its data. Every other key is a
/// parameter, even if the inference request reserves the name.
///
/// Fails with Triton's status and text for the mistake; syntax errors come before all others. Of two equal keys the
/// first counts.
pub fn decode_generate(
    body: &[u8],
    model: &ModelConfig,
    version: Option<i64>,
) -> galatea_types::Result<InferRequest> {
    let mut cursor = JsonCursor::new(body);
    let mut request = InferRequest::new(model.name().clone());
    request.model_version = version;
    request.id = checked_document(&cursor)?;
    Mapping { model, request: &mut request, is_nested: false }.read(&mut cursor)?;
    Ok(request)
}

/// Checks the syntax of the whole text and returns the request id in it.
fn checked_document(start: &JsonCursor<'_>) -> Result<String> {
    let mut cursor = start.clone();
    if cursor.kind() != Kind::Object {
        start.check()?;
        return Err(DecodeError::NotObject);
    }
    let mut id = field::Member::default();
    for_each_member(&mut cursor, |key, cursor| match key {
        b"id" => id.read(cursor, JsonCursor::expect_string),
        _ => cursor.skip_value(),
    })?;
    cursor.end_document()?;
    limits::id(&id.take_field(&cursor, "id", JsonCursor::expect_string)?.unwrap_or_default())
}

/// The mapping of an object's keys to inputs and parameters.
struct Mapping<'r> {
    model: &'r ModelConfig,
    request: &'r mut InferRequest,
    /// Inside `parameters`, where that name has no special meaning.
    is_nested: bool,
}

impl Mapping<'_> {
    fn read(&mut self, cursor: &mut JsonCursor<'_>) -> Result<()> {
        let mut seen = HashSet::new();
        let most = self.model.inputs().len() + MAX_PARAMETERS;
        let mut count = Count::new("members", most, self.model.name());
        for_each_member(cursor, |key, cursor| {
            count.next()?;
            let is_first = seen.insert(key.to_vec());
            let key = String::from_utf8_lossy(key);
            let spec = self.model.inputs().iter().find(|input| *input.name == *key);
            match (&*key, spec) {
                (NESTED, None) if is_first && !self.is_nested => self.read_nested(cursor),
                (NESTED, Some(_)) if !self.is_nested => Err(DecodeError::KeywordIsInput(NESTED)),
                (_, Some(spec)) => self.read_input(spec, cursor),
                (_, None) if is_first => self.read_parameter(&key, cursor),
                (_, None) => Ok(cursor.skip_value()?),
            }
        })
    }

    fn read_nested(&mut self, cursor: &mut JsonCursor<'_>) -> Result<()> {
        if cursor.kind() != Kind::Object {
            return Err(DecodeError::KeywordNotObject(NESTED));
        }
        Mapping { model: self.model, request: self.request, is_nested: true }
            .read(cursor)
            .map_err(|e| DecodeError::InKeyword { keyword: NESTED, error: Box::new(e) })
    }

    fn read_input(&mut self, spec: &TensorSpec, cursor: &mut JsonCursor<'_>) -> Result<()> {
        if self.request.input(&spec.name).is_some() {
            return Err(DecodeError::DuplicateInput {
                prefix: self.request.message_prefix().to_string(),
                input: spec.name.to_string(),
            });
        }
        self.request.inputs.push(read_tensor(spec, self.model.has_batching(), cursor)?);
        Ok(())
    }

    fn read_parameter(&mut self, name: &str, cursor: &mut JsonCursor<'_>) -> Result<()> {
        let value = custom_value(name, cursor)?;
        self.request.parameters.push((name.to_owned(), value));
        Ok(())
    }
}

/// Reads a single value, or an array. Its elements may be nested as in an inference request, but only the outermost
/// array counts for the shape.
fn read_tensor(spec: &TensorSpec, is_batched: bool, cursor: &mut JsonCursor<'_>) -> Result<Tensor> {
    let count = count_elements(cursor)?;
    let shape = || {
        shape_of(spec, is_batched, count).ok_or_else(|| DecodeError::NoShape(spec.name.to_string()))
    };
    let (data_type, elements) = (spec.data_type, Elements::Kept);
    let expected = ExpectedData { data_type, count, input_name: &spec.name, elements };
    let data = |cursor: &mut JsonCursor<'_>| {
        let start = cursor.clone();
        tensor_data::decode_any(cursor, expected)
            .map_err(|error| advice::of_generate(error, &start, expected))
    };
    let (shape, data) = if spec.data_type == DataType::Bytes {
        // Triton needs the bytes to know their size, so a wrong type is reported before a wrong shape.
        let data = data(cursor)?;
        (shape()?, data)
    } else {
        (shape()?, data(cursor)?)
    };
    Ok(Tensor::new(spec.name.clone(), spec.data_type, shape, data))
}

fn count_elements(cursor: &JsonCursor<'_>) -> Result<usize> {
    let mut cursor = cursor.clone();
    if cursor.kind() != Kind::Array {
        return Ok(1);
    }
    let mut count = 0;
    for_each_element(&mut cursor, |cursor| {
        count += 1;
        cursor.skip_value()
    })?;
    Ok(count)
}

/// Returns the shape. The innermost variable dimension is `count` divided by the fixed ones; other variable dimensions are 1.
fn shape_of(spec: &TensorSpec, is_batched: bool, count: usize) -> Option<Shape> {
    let mut shape = if is_batched { spec.dims.with_leading(-1) } else { spec.dims.clone() };
    let mut left = i64::try_from(count).ok()?;
    for &dim in shape.iter().filter(|&&dim| dim >= 0) {
        if left.checked_rem(dim)? != 0 {
            return None;
        }
        left = left.checked_div(dim)?;
    }
    for dim in shape.dims_mut().iter_mut().rev().filter(|dim| **dim < 0) {
        *dim = std::mem::replace(&mut left, 1);
    }
    (left == 1).then_some(shape)
}

enum Member<'r> {
    Text(&'r str),
    Version(i64),
    Parameter(&'r ParameterValue),
    Output(&'r Tensor),
}

/// Writes a response as one flat object with its keys sorted. Of equal names the response's own come first, then
/// parameters, then outputs.
///
/// FP32 is written as the double with its value, as in Triton's text; other types as [`encode`](super::encode) writes
/// them. FP16 and BF16 outputs have no JSON form and fail.
pub fn encode_generate(response: &InferResponse) -> galatea_types::Result<Vec<u8>> {
    let mut members = BTreeMap::new();
    if !response.id.is_empty() {
        members.insert("id", Member::Text(&response.id));
    }
    members.insert("model_name", Member::Text(&response.model_name));
    members.insert("model_version", Member::Version(response.model_version));
    for (name, value) in &response.parameters {
        members.entry(name).or_insert(Member::Parameter(value));
    }
    for output in &response.outputs {
        members.entry(&output.name).or_insert(Member::Output(output));
    }
    let mut json = vec![b'{'];
    for (i, (name, member)) in members.into_iter().enumerate() {
        if i > 0 {
            json.push(b',');
        }
        push_string(&mut json, name.as_bytes());
        json.push(b':');
        push_member(&mut json, &member)?;
    }
    json.push(b'}');
    Ok(json)
}

fn push_member(json: &mut Vec<u8>, member: &Member<'_>) -> galatea_types::Result<()> {
    match member {
        Member::Text(text) => push_string(json, text.as_bytes()),
        Member::Version(version) => push_string(json, version.to_string().as_bytes()),
        Member::Parameter(value) => push_parameter(json, value),
        Member::Output(tensor) => push_output(json, &*tensor.on_host()?)?,
    }
    Ok(())
}

fn push_output(json: &mut Vec<u8>, tensor: &Tensor) -> galatea_types::Result<()> {
    let is_array = !has_one_element(tensor)?;
    json.extend(is_array.then_some(b'['));
    if tensor.data_type == DataType::Fp32 {
        push_numbers(json, tensor.host()?, |room, b| {
            write_float(room, f64::from(f32::from_le_bytes(b)))
        })?;
    } else {
        push_data(json, tensor)?;
    }
    json.extend(is_array.then_some(b']'));
    Ok(())
}

/// Uses the data, not the shape: the result is JSON even if a backend got one of them wrong.
fn has_one_element(tensor: &Tensor) -> galatea_types::Result<bool> {
    Ok(match tensor.data_type.byte_size() {
        Some(size) => tensor.data.len() / size == 1,
        None => byte_strings::elements(tensor.host()?).take(2).count() == 1,
    })
}

/// Returns a JSON document as a server-sent event.
pub fn server_sent_event(json: &[u8]) -> Vec<u8> {
    [b"data: ", json, b"\n\n"].concat()
}
