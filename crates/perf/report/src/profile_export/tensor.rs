//! Tensors as JSON values.

use galatea_types::{DataType, byte_strings};
use half::{bf16, f16};

/// Returns the element of a tensor with one, else a flat list. Without data, as with a shared memory region, it returns an empty
/// string.
pub(super) fn value(data_type: DataType, data: &[u8]) -> String {
    if data.is_empty() {
        return string("");
    }
    match data_type {
        DataType::Bool => list(data, |[byte]| (byte != 0).to_string()),
        DataType::Uint8 => list(data, |bytes| u8::from_le_bytes(bytes).to_string()),
        DataType::Uint16 => list(data, |bytes| u16::from_le_bytes(bytes).to_string()),
        DataType::Uint32 => list(data, |bytes| u32::from_le_bytes(bytes).to_string()),
        DataType::Uint64 => list(data, |bytes| u64::from_le_bytes(bytes).to_string()),
        DataType::Int8 => list(data, |bytes| i8::from_le_bytes(bytes).to_string()),
        DataType::Int16 => list(data, |bytes| i16::from_le_bytes(bytes).to_string()),
        DataType::Int32 => list(data, |bytes| i32::from_le_bytes(bytes).to_string()),
        DataType::Int64 => list(data, |bytes| i64::from_le_bytes(bytes).to_string()),
        DataType::Fp16 => list(data, |bytes| float(f16::from_le_bytes(bytes).into())),
        DataType::Bf16 => list(data, |bytes| float(bf16::from_le_bytes(bytes).into())),
        DataType::Fp32 => list(data, |bytes| float(f32::from_le_bytes(bytes).into())),
        DataType::Fp64 => list(data, |bytes| float(f64::from_le_bytes(bytes))),
        DataType::Bytes => one_or_list(strings(data)),
    }
}

fn list<const N: usize>(data: &[u8], show: impl Fn([u8; N]) -> String) -> String {
    one_or_list(data.chunks_exact(N).filter_map(|bytes| bytes.try_into().ok()).map(show).collect())
}

fn one_or_list(values: Vec<String>) -> String {
    match values.as_slice() {
        [value] => value.clone(),
        _ => format!("[{}]", values.join(",")),
    }
}

/// Reads elements with their length before them; stops at a length that is too large.
fn strings(data: &[u8]) -> Vec<String> {
    let elements = byte_strings::elements(data).map_while(Result::ok);
    elements.map(|element| string(&String::from_utf8_lossy(element))).collect()
}

pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Formats a float. JSON has no infinity and no NaN: those are `null`.
pub(super) fn float(number: f64) -> String {
    serde_json::Value::from(number).to_string()
}
