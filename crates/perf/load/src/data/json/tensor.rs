//! One tensor: a list, or an object with `content` and `shape`, or with `b64`.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use galatea_types::{DataType, Shape, byte_strings};
use serde_json::value::RawValue;

use super::{
    elements::read_elements, error::TensorError, expected_tensor::ExpectedTensor, is_list, members,
};

/// Reads shape and data, and checks both against the wanted ones. The error names no position.
pub(super) fn read_tensor(
    tensor: &RawValue,
    wanted: &ExpectedTensor<'_>,
) -> Result<(Vec<i64>, Vec<u8>), TensorError> {
    let (shape, data) = if is_list(tensor) {
        (None, read_elements(tensor, wanted.data_type)?)
    } else {
        read_object(tensor, wanted.data_type)?
    };
    let shape = Shape::from(shape.as_deref().unwrap_or(wanted.shape));
    if wanted.needs_shape || !shape.is_variable() {
        check_shape(&shape, wanted)?;
        check_size(&shape, &data, wanted)?;
    }
    Ok((shape.to_vec(), data))
}

fn read_object(
    tensor: &RawValue,
    data_type: DataType,
) -> Result<(Option<Vec<i64>>, Vec<u8>), TensorError> {
    let members = members(tensor).ok_or(TensorError::Malformed)?;
    let shape = match members.get("shape") {
        Some(shape) => Some(read_shape(shape)?),
        None => None,
    };
    if let Some(encoded) = members.get("b64") {
        return Ok((shape, decode(encoded)?));
    }
    let content = *members.get("content").ok_or(TensorError::NoContent)?;
    Ok((shape, read_content(content, data_type)?))
}

fn read_shape(shape: &RawValue) -> Result<Vec<i64>, TensorError> {
    serde_json::from_str(shape.get()).map_err(|_| TensorError::ShapeIsNoList)
}

fn read_content(content: &RawValue, data_type: DataType) -> Result<Vec<u8>, TensorError> {
    if is_list(content) {
        return read_elements(content, data_type);
    }
    match super::members(content).as_ref().and_then(|members| members.get("b64")) {
        Some(encoded) => decode(encoded),
        None => Err(TensorError::NoArray),
    }
}

/// Base64 without padding, or with line breaks, is accepted, as some encoders write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn decode(encoded: &RawValue) -> Result<Vec<u8>, TensorError> {
    let mut encoded: String =
        serde_json::from_str(encoded.get()).map_err(|_| TensorError::Base64IsNoText)?;
    encoded.retain(|letter| !letter.is_ascii_whitespace());
    BASE64.decode(encoded).map_err(TensorError::NotBase64)
}

fn check_shape(shape: &Shape, wanted: &ExpectedTensor<'_>) -> Result<(), TensorError> {
    let (name, model) = (wanted.name.to_owned(), Shape::from(wanted.shape).to_string());
    if shape.is_variable() {
        return Err(TensorError::OpenShape { name, model });
    }
    if !Shape::from(wanted.shape).admits(shape) {
        return Err(TensorError::WrongShape { name, given: shape.to_string(), model });
    }
    Ok(())
}

fn check_size(shape: &Shape, data: &[u8], wanted: &ExpectedTensor<'_>) -> Result<(), TensorError> {
    let (expected, got, unit) = match wanted.data_type {
        DataType::Bytes => (shape.element_count(), byte_strings::count(data).ok(), "elements"),
        data_type => (shape.byte_size(data_type), Some(data.len()), "bytes"),
    };
    if expected.is_some() && expected == got {
        return Ok(());
    }
    Err(TensorError::WrongSize { name: wanted.name.to_owned(), expected, got, unit })
}
