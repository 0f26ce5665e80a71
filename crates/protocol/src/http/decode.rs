//! An inference request: JSON header, binary tensors behind it, or raw bytes.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_types::{
    Buffer, CorrelationId, Error, InferRequest, ParameterValue, RequestedOutput, Result, Shape,
    Tensor, byte_strings,
};

use super::{
    ResponsePlan,
    input::{self, BinaryTail, read_at, read_member, unknown_region},
    json::{Cursor, Kind, Number, for_each_element, for_each_member},
    response_plan::PlannedOutput,
};
use crate::parameters;

/// Translates the body of an inference request (H-30 to H-48).
///
/// The first `header_length` bytes are JSON and the rest are the binary tensors; without the
/// `Inference-Header-Content-Length` header it is the length of the body. 0 makes the whole body the data of
/// the model's one input (H-42). Binary tensors share the memory of `body`.
///
/// Fails with the status and text Triton has for the mistake, syntax errors before all others.
pub fn decode(
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
) -> Result<(InferRequest, ResponsePlan)> {
    decode_for(ResponsePlan::new(model.has_batching()), body, header_length, model, version)
}

/// [`decode`], with what is known of the answer's form before the request is read.
pub(crate) fn decode_for(
    mut plan: ResponsePlan,
    body: &Bytes,
    header_length: usize,
    model: &ModelConfig,
    version: Option<i64>,
) -> Result<(InferRequest, ResponsePlan)> {
    let mut request = InferRequest::new(model.name().clone());
    request.model_version = version;
    if header_length == 0 {
        request.inputs.push(raw_input(body, model)?);
        plan.default_is_binary = !plan.is_in_lines;
        return Ok((request, plan));
    }
    let json = body.get(..header_length).ok_or_else(|| header_out_of_range(body, header_length))?;
    let mut tail = BinaryTail { body, next: header_length };
    let decoded = Header::scan(json, &mut tail, model.name())
        .and_then(|header| header.into_request(&mut request, &mut plan))
        .and_then(|()| check_used_up(&tail, model.name()));
    match decoded {
        Ok(()) => Ok((request, plan)),
        Err(error) => Err(Cursor::check_document(json).err().unwrap_or(error)),
    }
}

/// H-40.
fn header_out_of_range(body: &Bytes, header_length: usize) -> Error {
    Error::invalid_arg(format!(
        "inference header size should be in range (0, {}), got: {header_length}",
        body.len()
    ))
}

fn check_used_up(tail: &BinaryTail<'_>, model_name: &str) -> Result<()> {
    if tail.is_used_up() {
        return Ok(());
    }
    Err(Error::invalid_arg(format!("unexpected additional input data for model '{model_name}'")))
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
    fn scan(json: &'a [u8], tail: &mut BinaryTail<'_>, model_name: &str) -> Result<Self> {
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
                    header.inputs = Some(scan_inputs(cursor, tail, model_name));
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

    /// In Triton's order of reading, so that the same mistake is told first.
    fn into_request(self, request: &mut InferRequest, plan: &mut ResponsePlan) -> Result<()> {
        if let Some(at) = self.id {
            let id = read_at(&self.cursor, at, "id", Cursor::expect_string)?;
            request.id = String::from_utf8_lossy(&id).into_owned();
        }
        if let Some(at) = self.parameters {
            read_parameters(&mut self.cursor.at(at), request, plan)?;
        }
        request.inputs = match self.inputs {
            Some(inputs) => inputs?,
            None => read_member(&self.cursor, None, "inputs", |_| Ok(Vec::new()))?,
        };
        check_unique(request)?;
        if let Some(at) = self.outputs {
            read_outputs(&self.cursor, at, request, plan)?;
        }
        Ok(())
    }
}

/// H-78.
fn check_unique(request: &InferRequest) -> Result<()> {
    if request.inputs.len() < 2 {
        return Ok(());
    }
    // A set, because a hostile request can name a million inputs.
    let mut seen = HashSet::with_capacity(request.inputs.len());
    match request.inputs.iter().find(|input| !seen.insert(&*input.name)) {
        None => Ok(()),
        Some(input) => Err(Error::invalid_arg(format!(
            "{}input '{}' already exists in request",
            request.message_prefix(),
            input.name
        ))),
    }
}

/// Leaves the cursor behind the array. An error of one input is kept, so that what Triton checks first can
/// be told first.
fn scan_inputs(
    cursor: &mut Cursor<'_>,
    tail: &mut BinaryTail<'_>,
    model_name: &str,
) -> Result<Vec<Tensor>> {
    let start = cursor.position();
    let mut inputs = Vec::with_capacity(4);
    let array = cursor.expect_array().map_err(|e| e.prefixed("Unable to parse 'inputs': "));
    let result = array.and_then(|()| {
        for_each_element(cursor, |cursor| {
            inputs.push(input::decode(cursor, tail, model_name)?);
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

/// H-44, H-45, H-47.
fn read_parameters(
    cursor: &mut Cursor<'_>,
    request: &mut InferRequest,
    plan: &mut ResponsePlan,
) -> Result<()> {
    if cursor.kind() != Kind::Object {
        return Err(Error::internal(
            "failed to get request params.: attempt to get members for non-object",
        ));
    }
    for_each_member(cursor, |key, cursor| {
        let key = String::from_utf8_lossy(key);
        let in_parameter = |e: Error| e.prefixed(format_args!("Unable to parse '{key}': "));
        match key.as_ref() {
            "sequence_id" => {
                request.correlation_id = correlation_id(cursor).map_err(in_parameter)?
            }
            "sequence_start" => {
                request.sequence_start = cursor.expect_bool().map_err(in_parameter)?;
            }
            "sequence_end" => request.sequence_end = cursor.expect_bool().map_err(in_parameter)?,
            "priority" => request.priority = cursor.expect_u64().map_err(in_parameter)?,
            "timeout" => {
                let us = cursor.expect_u64().map_err(in_parameter)?;
                request.timeout = (us > 0).then(|| Duration::from_micros(us));
            }
            "binary_data_output" => {
                plan.default_is_binary = cursor.expect_bool().map_err(in_parameter)?;
            }
            "triton_enable_empty_final_response" if plan.is_in_lines => {
                plan.wants_empty_final = cursor.expect_bool().map_err(in_parameter)?;
            }
            name => {
                parameters::check_custom_name(name)?;
                let value = custom_value(name, cursor)?;
                request.parameters.push((name.to_owned(), value));
            }
        }
        Ok(())
    })
}

/// 0 and the empty string name no sequence.
fn correlation_id(cursor: &mut Cursor<'_>) -> Result<CorrelationId> {
    if cursor.kind() == Kind::Number {
        let number = cursor.clone().number()?;
        if let Some(id) = number.as_u64() {
            cursor.number()?;
            return Ok(parameters::numeric_correlation_id(id));
        }
    }
    let text = cursor.expect_string()?;
    Ok(parameters::text_correlation_id(String::from_utf8_lossy(&text).into_owned()))
}

pub(crate) fn custom_value(name: &str, cursor: &mut Cursor<'_>) -> Result<ParameterValue> {
    match cursor.kind() {
        Kind::String => {
            let text = cursor.string()?;
            Ok(ParameterValue::String(String::from_utf8_lossy(&text).into_owned()))
        }
        Kind::Bool => cursor.boolean().map(ParameterValue::Bool),
        Kind::Number => Ok(match cursor.number()? {
            Number::Negative(n) => ParameterValue::Int(n),
            Number::Unsigned(n) => match i64::try_from(n) {
                Ok(n) => ParameterValue::Int(n),
                Err(_) => ParameterValue::Uint(n),
            },
            Number::Real(x) => ParameterValue::Double(x),
        }),
        Kind::Object | Kind::Array | Kind::Null | Kind::Other => Err(Error::invalid_arg(format!(
            "parameter '{name}' has invalid type. It should be either 'int', 'bool', or 'string'."
        ))),
    }
}

fn read_outputs(
    cursor: &Cursor<'_>,
    at: usize,
    request: &mut InferRequest,
    plan: &mut ResponsePlan,
) -> Result<()> {
    let mut cursor = cursor.at(at);
    cursor.expect_array().map_err(|e| e.prefixed("Unable to parse 'outputs': "))?;
    for_each_element(&mut cursor, |cursor| {
        plan.outputs.push(read_output(cursor)?);
        Ok(())
    })?;
    if plan.outputs.len() > 1 {
        // Asking twice is the same as asking once; the first wish counts.
        let mut seen = HashSet::with_capacity(plan.outputs.len());
        plan.outputs.retain(|output| seen.insert(output.name.clone()));
    }
    let requested = |output: &PlannedOutput| RequestedOutput {
        name: output.name.clone(),
        classification: output.classification,
    };
    request.outputs.extend(plan.outputs.iter().map(requested));
    Ok(())
}

fn read_output(cursor: &mut Cursor<'_>) -> Result<PlannedOutput> {
    let (mut name, mut parameters) = (None, None);
    for_each_member(cursor, |key, cursor| {
        match key {
            b"name" => _ = name.get_or_insert(cursor.position()),
            b"parameters" => _ = parameters.get_or_insert(cursor.position()),
            _ => {}
        }
        cursor.skip_value()
    })?;
    let name = read_member(cursor, name, "name", Cursor::expect_string)?;
    let name: Arc<str> = String::from_utf8_lossy(&name).into();
    let mut output = PlannedOutput { name, is_binary: false, classification: None };
    let mut region = None;
    if let Some(at) = parameters {
        for_each_member(&mut cursor.at(at), |key, cursor| {
            match key {
                b"binary_data" => {
                    output.is_binary =
                        read_at(cursor, cursor.position(), "binary_data", Cursor::expect_bool)?;
                }
                b"classification" => {
                    let k = cursor.clone().expect_u64();
                    let k = k.map_err(|e| e.prefixed("Unable to set 'classification': "))?;
                    output.classification = (k > 0).then(|| u32::try_from(k).unwrap_or(u32::MAX));
                }
                b"shared_memory_region" => region = Some(cursor.position()),
                _ => {}
            }
            cursor.skip_value()
        })?;
    }
    match region {
        None => Ok(output),
        Some(_) if output.classification.is_some() => Err(Error::invalid_arg(
            "Output can't set both 'shared_memory_region' and 'classification'",
        )),
        Some(at) => Err(unknown_region(cursor, at)),
    }
}

/// H-42: the whole body is the data of the model's one input, whose shape follows from the size.
fn raw_input(body: &Bytes, model: &ModelConfig) -> Result<Tensor> {
    let refuse =
        |text: String| Err(Error::invalid_arg(format!("[request id: <id_unknown>] {text}")));
    let [spec] = model.inputs() else {
        return refuse(format!(
            "Raw request must only have 1 input (found 1) to be deduced but got {} inputs in '{}' model \
             configuration",
            model.inputs().len(),
            model.name()
        ));
    };
    let mut shape = spec.dims.clone();
    let data = match spec.data_type.byte_size() {
        None if shape[..] != [1] => {
            return refuse(format!(
                "For BYTE datatype raw input '{}', the model must have input shape [1]",
                spec.name
            ));
        }
        None => byte_strings::pack(&[&body[..]])
            .map_err(|_| Error::invalid_arg("a string is longer than 4294967295 bytes"))?,
        Some(size) => {
            if shape.iter().filter(|&&d| d < 0).count() > 1 {
                return refuse(format!(
                    "The shape of the raw input '{}' can not be deduced because there are more than one \
                     variable-sized dimension",
                    spec.name
                ));
            }
            let expected = fill_variable_dim(&mut shape, size, body.len());
            if expected != body.len() {
                return refuse(format!(
                    "input byte size mismatch for input 'raw_input' for model '{}'. Expected {expected}, \
                     got {}",
                    model.name(),
                    body.len()
                ));
            }
            Buffer::from(body.clone())
        }
    };
    let shape = if model.has_batching() { shape.with_leading(1) } else { shape };
    Ok(Tensor::new(spec.name.clone(), spec.data_type, shape, data))
}

/// Sets the one variable dimension, if there is one, to what `available` bytes allow. Returns the bytes the
/// shape then takes.
fn fill_variable_dim(shape: &mut Shape, element_size: usize, available: usize) -> usize {
    let known = shape.iter().filter(|&&d| d >= 0).map(|&d| usize::try_from(d).unwrap_or(0));
    let unit = known.fold(element_size, usize::saturating_mul);
    let Some(variable) = shape.dims_mut().iter_mut().find(|d| **d < 0) else { return unit };
    let count = available.checked_div(unit).unwrap_or(0);
    *variable = i64::try_from(count).unwrap_or(i64::MAX);
    unit.saturating_mul(count)
}
