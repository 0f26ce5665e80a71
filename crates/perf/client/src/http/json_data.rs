//! Conversion of tensor elements to JSON and back.

use std::fmt::Write;

use galatea_types::{DataType, Error, byte_strings};
use serde_json::Value;

/// The reason why a tensor cannot be written as JSON, or read from it.
#[derive(Debug, thiserror::Error)]
pub(super) enum JsonDataError {
    #[error(
        "input '{input}' is {data_type}, which JSON cannot carry; use the binary tensor format"
    )]
    NoJsonForm { input: String, data_type: DataType },
    #[error("input '{input}' data does not consist of whole elements")]
    PartialElement { input: String },
    #[error("input '{input}' holds a number that JSON cannot carry")]
    Number { input: String },
    #[error("input '{input}' holds text that is not UTF-8, which JSON cannot carry")]
    Text { input: String },
    #[error("output '{output}' of the response holds JSON data that is not {data_type}")]
    OtherType { output: String, data_type: DataType },
}

impl From<JsonDataError> for Error {
    fn from(error: JsonDataError) -> Self {
        let new = match error {
            JsonDataError::OtherType { .. } => Error::internal,
            _ => Error::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

/// Appends the elements of row-major little-endian `data` to `json`, comma-separated and without brackets.
///
/// # Errors
/// If JSON cannot carry the tensor: FP16 and BF16, numbers that are not finite, text that is not UTF-8; or if the data does
/// not consist of whole elements. The error has the tensor's name.
pub(super) fn write(
    json: &mut String,
    name: &str,
    data_type: DataType,
    data: &[u8],
) -> Result<(), JsonDataError> {
    match data_type {
        DataType::Bool => elements(json, name, data, |json, [byte]| {
            json.push_str(if byte == 0 { "false" } else { "true" });
            true
        }),
        DataType::Uint8 => integers(json, name, data, u8::from_le_bytes),
        DataType::Uint16 => integers(json, name, data, u16::from_le_bytes),
        DataType::Uint32 => integers(json, name, data, u32::from_le_bytes),
        DataType::Uint64 => integers(json, name, data, u64::from_le_bytes),
        DataType::Int8 => integers(json, name, data, i8::from_le_bytes),
        DataType::Int16 => integers(json, name, data, i16::from_le_bytes),
        DataType::Int32 => integers(json, name, data, i32::from_le_bytes),
        DataType::Int64 => integers(json, name, data, i64::from_le_bytes),
        DataType::Fp32 => elements(json, name, data, |json, bytes| {
            let value = f32::from_le_bytes(bytes);
            value.is_finite() && write!(json, "{value:?}").is_ok()
        }),
        DataType::Fp64 => elements(json, name, data, |json, bytes| {
            let value = f64::from_le_bytes(bytes);
            value.is_finite() && write!(json, "{value:?}").is_ok()
        }),
        DataType::Bytes => texts(json, name, data),
        DataType::Fp16 | DataType::Bf16 => {
            Err(JsonDataError::NoJsonForm { input: name.to_owned(), data_type })
        }
    }
}

fn integers<T: std::fmt::Display, const N: usize>(
    json: &mut String,
    name: &str,
    data: &[u8],
    from: impl Fn([u8; N]) -> T,
) -> Result<(), JsonDataError> {
    elements(json, name, data, |json, bytes| write!(json, "{}", from(bytes)).is_ok())
}

fn elements<const N: usize>(
    json: &mut String,
    name: &str,
    data: &[u8],
    mut put: impl FnMut(&mut String, [u8; N]) -> bool,
) -> Result<(), JsonDataError> {
    let (values, rest) = data.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(JsonDataError::PartialElement { input: name.to_owned() });
    }
    for (at, &value) in values.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        if !put(json, value) {
            return Err(JsonDataError::Number { input: name.to_owned() });
        }
    }
    Ok(())
}

fn texts(json: &mut String, name: &str, data: &[u8]) -> Result<(), JsonDataError> {
    let input = || name.to_owned();
    for (at, text) in byte_strings::elements(data).enumerate() {
        let text = text.map_err(|_| JsonDataError::PartialElement { input: input() })?;
        let text = std::str::from_utf8(text).ok().and_then(|text| serde_json::to_string(text).ok());
        let text = text.ok_or_else(|| JsonDataError::Text { input: input() })?;
        if at > 0 {
            json.push(',');
        }
        json.push_str(&text);
    }
    Ok(())
}

/// Returns the elements of a response's `data`, which may be nested, as row-major little-endian bytes.
///
/// # Errors
/// If an element is not of the data type; the error has the output's name.
pub(super) fn read(
    name: &str,
    data_type: DataType,
    data: &Value,
) -> Result<Vec<u8>, JsonDataError> {
    let mut bytes = Vec::new();
    match push(&mut bytes, data_type, data) {
        Some(()) => Ok(bytes),
        None => Err(JsonDataError::OtherType { output: name.to_owned(), data_type }),
    }
}

/// Appends elements. The JSON parser's own limit bounds the depth.
fn push(bytes: &mut Vec<u8>, data_type: DataType, value: &Value) -> Option<()> {
    if let Value::Array(values) = value {
        return values.iter().try_for_each(|value| push(bytes, data_type, value));
    }
    match data_type {
        DataType::Bool => bytes.push(u8::from(value.as_bool()?)),
        DataType::Uint8 => bytes.extend(unsigned::<u8>(value)?.to_le_bytes()),
        DataType::Uint16 => bytes.extend(unsigned::<u16>(value)?.to_le_bytes()),
        DataType::Uint32 => bytes.extend(unsigned::<u32>(value)?.to_le_bytes()),
        DataType::Uint64 => bytes.extend(value.as_u64()?.to_le_bytes()),
        DataType::Int8 => bytes.extend(signed::<i8>(value)?.to_le_bytes()),
        DataType::Int16 => bytes.extend(signed::<i16>(value)?.to_le_bytes()),
        DataType::Int32 => bytes.extend(signed::<i32>(value)?.to_le_bytes()),
        DataType::Int64 => bytes.extend(value.as_i64()?.to_le_bytes()),
        // From the nearest double to the nearest float, as every JSON client reads it.
        DataType::Fp32 => bytes.extend((value.as_f64()? as f32).to_le_bytes()),
        DataType::Fp64 => bytes.extend(value.as_f64()?.to_le_bytes()),
        DataType::Bytes => {
            byte_strings::push(bytes, value.as_str()?.as_bytes()).ok()?;
        }
        DataType::Fp16 | DataType::Bf16 => return None,
    }
    Some(())
}

fn unsigned<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_u64()?).ok()
}

fn signed<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_i64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn both_ways(data_type: DataType, data: &[u8], json: &str) {
        let mut written = String::new();
        write(&mut written, "A", data_type, data).unwrap();
        assert_eq!(written, json);
        let value = serde_json::from_str(&format!("[[{json}]]")).unwrap();
        assert_eq!(read("A", data_type, &value).unwrap(), data);
    }

    #[test]
    fn every_data_type_round_trips() {
        both_ways(DataType::Bool, &[1, 0], "true,false");
        both_ways(DataType::Uint8, &[0, 255], "0,255");
        both_ways(DataType::Int8, &[0x80, 127], "-128,127");
        both_ways(DataType::Uint16, &[255, 255], "65535");
        both_ways(DataType::Int16, &[0, 0x80], "-32768");
        both_ways(DataType::Uint32, &[255; 4], "4294967295");
        both_ways(DataType::Int32, &(-2i32).to_le_bytes(), "-2");
        both_ways(DataType::Uint64, &[255; 8], "18446744073709551615");
        both_ways(DataType::Int64, &i64::MIN.to_le_bytes(), "-9223372036854775808");
        both_ways(DataType::Fp32, &0.1f32.to_le_bytes(), "0.1");
        both_ways(DataType::Fp32, &f32::MAX.to_le_bytes(), "3.4028235e38");
        both_ways(DataType::Fp64, &(-1e300f64).to_le_bytes(), "-1e300");
        both_ways(DataType::Bytes, b"\x02\0\0\0a\"\0\0\0\0", "\"a\\\"\",\"\"");
        both_ways(DataType::Int32, &[], "");
    }

    #[test]
    fn values_json_cannot_carry_are_refused() {
        for (data_type, data) in [
            (DataType::Fp16, &[0u8, 0][..]),
            (DataType::Bf16, &[0, 0]),
            (DataType::Fp32, &f32::NAN.to_le_bytes()),
            (DataType::Fp64, &f64::INFINITY.to_le_bytes()),
            (DataType::Int32, &[1, 2, 3]),
            (DataType::Bytes, b"\x01\0\0\0\xff"),
            (DataType::Bytes, b"\x02\0\0\0a"),
        ] {
            let error = write(&mut String::new(), "A", data_type, data).unwrap_err();
            assert!(error.to_string().starts_with("input 'A'"), "{error}");
        }
    }

    #[test]
    fn elements_of_another_type_are_an_error() {
        for (data_type, json) in [
            (DataType::Uint8, "[256]"),
            (DataType::Int8, "[1.5]"),
            (DataType::Bool, "[1]"),
            (DataType::Bytes, "[1]"),
            (DataType::Fp32, "[\"1\"]"),
            (DataType::Fp16, "[1]"),
            (DataType::Int64, "{}"),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert!(read("A", data_type, &value).is_err(), "{data_type} {json}");
        }
    }
}
