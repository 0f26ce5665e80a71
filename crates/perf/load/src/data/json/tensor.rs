//! One tensor: a list, or an object with `content` and `shape`, or with `b64`.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use galatea_types::{DataType, byte_strings};
use serde_json::value::RawValue;

use super::{
    super::size::{byte_size, element_count, is_open, shape_text},
    elements::read_elements,
    is_list, members,
    wanted::Wanted,
};

/// Shape and data, both checked against what is wanted. The error is what is wrong, not where.
pub(super) fn read_tensor(
    tensor: &RawValue,
    wanted: &Wanted<'_>,
) -> Result<(Vec<i64>, Vec<u8>), String> {
    let (shape, data) = if is_list(tensor) {
        (None, read_elements(tensor, wanted.data_type)?)
    } else {
        read_object(tensor, wanted.data_type)?
    };
    let shape = shape.unwrap_or_else(|| wanted.shape.to_vec());
    if wanted.needs_shape || !is_open(&shape) {
        check_shape(&shape, wanted)?;
        check_size(&shape, &data, wanted)?;
    }
    Ok((shape, data))
}

fn read_object(
    tensor: &RawValue,
    data_type: DataType,
) -> Result<(Option<Vec<i64>>, Vec<u8>), String> {
    let members = members(tensor).ok_or("Input data file is malformed.")?;
    let shape = match members.get("shape") {
        Some(shape) => Some(read_shape(shape)?),
        None => None,
    };
    if let Some(encoded) = members.get("b64") {
        return Ok((shape, decode(encoded)?));
    }
    let content = *members.get("content").ok_or("missing content field.")?;
    Ok((shape, read_content(content, data_type)?))
}

fn read_shape(shape: &RawValue) -> Result<Vec<i64>, String> {
    serde_json::from_str(shape.get()).map_err(|_| "shape values must be integers.".to_owned())
}

fn read_content(content: &RawValue, data_type: DataType) -> Result<Vec<u8>, String> {
    if is_list(content) {
        return read_elements(content, data_type);
    }
    match super::members(content).as_ref().and_then(|members| members.get("b64")) {
        Some(encoded) => decode(encoded),
        None => {
            Err("The tensor values are not supported. Expected an array or b64 string".to_owned())
        }
    }
}

/// Padding may be left out, and line breaks be in between, as some encoders do.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn decode(encoded: &RawValue) -> Result<Vec<u8>, String> {
    let mut encoded: String = serde_json::from_str(encoded.get())
        .map_err(|_| "the value of b64 field should be of type string".to_owned())?;
    encoded.retain(|letter| !letter.is_ascii_whitespace());
    BASE64.decode(encoded).map_err(|error| format!("the value of b64 field is not base64: {error}"))
}

fn check_shape(shape: &[i64], wanted: &Wanted<'_>) -> Result<(), String> {
    let (name, model) = (wanted.name, shape_text(wanted.shape));
    if is_open(shape) {
        return Err(format!(
            "The variable-sized tensor \"{name}\" with model shape {model} needs to have its shape \
             fully defined. See the --shape option."
        ));
    }
    let fits = |(&dim, &wanted): (&i64, &i64)| dim == wanted || wanted == -1;
    if shape.len() != wanted.shape.len() || !shape.iter().zip(wanted.shape).all(fits) {
        return Err(format!(
            "The supplied shape of {} for input \"{name}\" is incompatible with the model's input \
             shape of {model}",
            shape_text(shape)
        ));
    }
    Ok(())
}

fn check_size(shape: &[i64], data: &[u8], wanted: &Wanted<'_>) -> Result<(), String> {
    let (expected, got, unit) = match wanted.data_type {
        DataType::Bytes => (element_count(shape), byte_strings::count(data).ok(), "elements"),
        data_type => (byte_size(shape, data_type), Some(data.len()), "bytes"),
    };
    if expected.is_some() && expected == got {
        return Ok(());
    }
    let name = wanted.name;
    let number = |count: Option<usize>| count.map_or("?".to_owned(), |count| count.to_string());
    let (expected, got) = (number(expected), number(got));
    Err(format!(
        "mismatch in the data provided for {name}. Expected: {expected} {unit}, Got: {got} {unit}"
    ))
}
