//! An inference response: JSON with the tensors inside, or binary tensors after it.

use bytes::Bytes;
use galatea_types::{
    DataType, InferResponse, ParameterValue, Parameters, Result, Tensor, byte_strings,
};

use super::{
    number_text::{NumberBuffer, write_bool, write_f32, write_float, write_signed, write_unsigned},
    plain_text::plain_length,
};
use crate::{
    answer_form::{AnswerPlan, Placement},
    encode_error::EncodeError,
};

/// The body of a response: the JSON, then the binary tensors in output order.
#[derive(Debug)]
pub struct EncodedResponse {
    /// Name, version, id, parameters, and the outputs without their binary data.
    pub json: Vec<u8>,
    /// The binary tensors, none of them empty. If there are any, `Inference-Header-Content-Length` has the length of the JSON.
    pub binary: Vec<Bytes>,
}

/// Writes a response in the form that the client asked for. Binary tensors share the memory of the response.
///
/// As in Triton, floating point numbers have the shortest form that gives the same value in their type. Not-a-number
/// and infinities are `NaN`, `Infinity` and `-Infinity`. BYTES elements are written unchanged even if they are not
/// UTF-8. `label` returns the text of a class of an output.
pub fn encode<'a>(
    response: InferResponse,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
) -> Result<EncodedResponse> {
    plan.check_regions(&response)?;
    let mut json = Vec::with_capacity(json_capacity(&response));
    let mut binary = Vec::new();
    json.push(b'{');
    if !response.id.is_empty() {
        json.extend_from_slice(b"\"id\":");
        push_string(&mut json, response.id.as_bytes());
        json.push(b',');
    }
    json.extend_from_slice(b"\"model_name\":");
    push_string(&mut json, response.model_name.as_bytes());
    json.extend_from_slice(b",\"model_version\":\"");
    push_integer(&mut json, response.model_version);
    json.push(b'"');
    push_parameters(&mut json, &response.parameters);
    json.extend_from_slice(b",\"outputs\":[");
    for (i, tensor) in response.outputs.iter().enumerate() {
        if i > 0 {
            json.push(b',');
        }
        let form = plan.form_of(&tensor.name);
        let tensor = form.apply(tensor, plan.is_batched, &label)?;
        let placement = form.placement();
        push_output(&mut json, &tensor, placement)?;
        if placement == Placement::Binary && !tensor.data.is_empty() {
            binary.push(tensor.host_bytes()?.clone());
        }
    }
    json.extend_from_slice(b"]}");
    Ok(EncodedResponse { json, binary })
}

fn json_capacity(response: &InferResponse) -> usize {
    // Doubling is fine for big JSON tensors; this size saves the usual response from growing at all.
    256 + response.outputs.iter().map(|t| 96 + t.name.len()).sum::<usize>()
}

fn push_output(json: &mut Vec<u8>, tensor: &Tensor, placement: Placement) -> Result<()> {
    json.extend_from_slice(b"{\"name\":");
    push_string(json, tensor.name.as_bytes());
    json.extend_from_slice(b",\"datatype\":\"");
    json.extend_from_slice(tensor.data_type.protocol_name().as_bytes());
    json.extend_from_slice(b"\",\"shape\":[");
    push_list(json, tensor.shape.iter(), |json, &dim| push_integer(json, dim));
    match placement {
        Placement::Inline => {
            json.extend_from_slice(b"],\"data\":[");
            push_data(json, tensor)?;
            json.extend_from_slice(b"]}");
        }
        Placement::Binary => {
            json.extend_from_slice(b"],\"parameters\":{\"binary_data_size\":");
            push_number(json, |room| write_unsigned(room, tensor.data.len() as u64));
            json.extend_from_slice(b"}}");
        }
        Placement::Elsewhere => json.extend_from_slice(b"]}"),
    }
    Ok(())
}

/// Writes the elements with commas between them.
pub(crate) fn push_data(json: &mut Vec<u8>, tensor: &Tensor) -> Result<()> {
    let data = tensor.host()?;
    match tensor.data_type {
        DataType::Bool => push_numbers(json, data, |room, [b]| write_bool(room, b != 0))?,
        DataType::Uint8 => push_unsigned(json, data, u8::from_le_bytes)?,
        DataType::Uint16 => push_unsigned(json, data, u16::from_le_bytes)?,
        DataType::Uint32 => push_unsigned(json, data, u32::from_le_bytes)?,
        DataType::Uint64 => push_unsigned(json, data, u64::from_le_bytes)?,
        DataType::Int8 => push_signed(json, data, i8::from_le_bytes)?,
        DataType::Int16 => push_signed(json, data, i16::from_le_bytes)?,
        DataType::Int32 => push_signed(json, data, i32::from_le_bytes)?,
        DataType::Int64 => push_signed(json, data, i64::from_le_bytes)?,
        DataType::Fp32 => {
            push_numbers(json, data, |room, b| write_f32(room, f32::from_le_bytes(b)))?
        }
        DataType::Fp64 => {
            push_numbers(json, data, |room, b| write_float(room, f64::from_le_bytes(b)))?
        }
        DataType::Bytes => return push_elements(json, tensor),
        DataType::Fp16 | DataType::Bf16 => {
            let (output, data_type) = (tensor.name.clone(), tensor.data_type);
            return Err(EncodeError::NoJsonForm { output, data_type }.into());
        }
    }
    Ok(())
}

fn push_unsigned<T: Into<u64>, const N: usize>(
    json: &mut Vec<u8>,
    data: &[u8],
    number: impl Fn([u8; N]) -> T,
) -> Result<(), EncodeError> {
    push_numbers(json, data, |room, bytes| write_unsigned(room, number(bytes).into()))
}

fn push_signed<T: Into<i64>, const N: usize>(
    json: &mut Vec<u8>,
    data: &[u8],
    number: impl Fn([u8; N]) -> T,
) -> Result<(), EncodeError> {
    push_numbers(json, data, |room, bytes| write_signed(room, number(bytes).into()))
}

/// The numbers that are written before they are appended.
const AT_ONCE: usize = 32;

/// Writes the numbers in `data` with commas between them. `write` writes one and returns the length of its text.
pub(crate) fn push_numbers<const N: usize>(
    json: &mut Vec<u8>,
    data: &[u8],
    write: impl Fn(&mut NumberBuffer, [u8; N]) -> usize,
) -> Result<(), EncodeError> {
    let (elements, _) = data.as_chunks::<N>();
    // The approximate size of most numbers, so that the text seldom moves as it grows.
    json.try_reserve(elements.len().saturating_mul(2 * N + 5))?;
    let mut texts = [0; AT_ONCE * size_of::<NumberBuffer>()];
    for some in elements.chunks(AT_ONCE) {
        let mut end = 0;
        for bytes in some {
            // There is room for each, because no number fills its room, even with its comma.
            let Some(room) = texts.get_mut(end..).and_then(|rest| rest.first_chunk_mut()) else {
                break;
            };
            end += write(room, *bytes);
            texts.get_mut(end).into_iter().for_each(|comma| *comma = b',');
            end += 1;
        }
        json.extend_from_slice(texts.get(..end).unwrap_or_default());
    }
    if !elements.is_empty() {
        json.pop();
    }
    Ok(())
}

fn push_elements(json: &mut Vec<u8>, tensor: &Tensor) -> Result<()> {
    let data = tensor.host()?;
    json.try_reserve(data.len()).map_err(EncodeError::from)?;
    for (i, element) in byte_strings::elements(data).enumerate() {
        if i > 0 {
            json.push(b',');
        }
        let truncated = |_| EncodeError::TruncatedElement { output: tensor.name.clone() };
        let element = element.map_err(truncated)?;
        push_string(json, element);
    }
    Ok(())
}

fn push_parameters(json: &mut Vec<u8>, parameters: &Parameters) {
    if parameters.is_empty() {
        return;
    }
    json.extend_from_slice(b",\"parameters\":{");
    push_list(json, parameters.iter(), |json, (name, value)| {
        push_string(json, name.as_bytes());
        json.push(b':');
        push_parameter(json, value);
    });
    json.push(b'}');
}

pub(crate) fn push_parameter(json: &mut Vec<u8>, value: &ParameterValue) {
    match value {
        ParameterValue::Bool(b) => push_number(json, |room| write_bool(room, *b)),
        ParameterValue::Int(n) => push_integer(json, *n),
        ParameterValue::Uint(n) => push_number(json, |room| write_unsigned(room, *n)),
        ParameterValue::Double(x) => push_number(json, |room| write_float(room, *x)),
        ParameterValue::String(text) => push_string(json, text.as_bytes()),
    }
}

fn push_list<T>(
    json: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    push: impl Fn(&mut Vec<u8>, T),
) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            json.push(b',');
        }
        push(json, item);
    }
}

fn push_integer(json: &mut Vec<u8>, value: i64) {
    push_number(json, |room| write_signed(room, value));
}

fn push_number(json: &mut Vec<u8>, write: impl FnOnce(&mut NumberBuffer) -> usize) {
    let mut room = NumberBuffer::default();
    let length = write(&mut room);
    json.extend_from_slice(room.get(..length).unwrap_or_default());
}

/// Writes a quoted string with the escapes of JSON; all other bytes are unchanged.
pub(crate) fn push_string(json: &mut Vec<u8>, text: &[u8]) {
    json.push(b'"');
    let mut rest = text;
    while let Some((plain, tail)) = rest.split_at_checked(plain_length(rest)) {
        json.extend_from_slice(plain);
        let Some((&special, tail)) = tail.split_first() else { break };
        push_escape(json, special);
        rest = tail;
    }
    json.push(b'"');
}

fn push_escape(json: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            json.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
            return;
        }
    };
    json.extend_from_slice(&[b'\\', short]);
}
