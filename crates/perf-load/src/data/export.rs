//! Inputs as the profile export shows them.

use galatea_perf_types::model::InputInfo;
use galatea_types::DataType;
use half::{bf16, f16};
use serde_json::{Map, Value};

use super::{Requests, batch::tensor};

impl Requests {
    /// By name, what a request of this step holds in the first element of its batch: a number, a list of
    /// numbers, or a text.
    pub fn exported_inputs(&self, stream: usize, step: usize) -> Map<String, Value> {
        let Some(step) = self.data.step(stream, step) else { return Map::new() };
        let value = |(index, input): (usize, &InputInfo)| {
            let data = &tensor(step, index)?.data;
            Some((input.name.clone(), exported(input.data_type, data)))
        };
        self.model.inputs.iter().enumerate().filter_map(value).collect()
    }
}

/// Strings are shown as one text, from the first one on to the last byte.
fn exported(data_type: DataType, data: &[u8]) -> Value {
    let Some(size) = data_type.byte_size() else {
        let text = data.get(size_of::<u32>()..).unwrap_or(data);
        return String::from_utf8_lossy(text).into();
    };
    let mut numbers: Vec<Value> =
        data.chunks_exact(size).map(|element| number(data_type, element)).collect();
    match numbers.len() {
        0 => Value::from(""),
        1 => numbers.remove(0),
        _ => Value::Array(numbers),
    }
}

/// `null` for what JSON cannot say.
fn number(data_type: DataType, element: &[u8]) -> Value {
    let mut padded = [0; 8];
    padded.iter_mut().zip(element).for_each(|(to, from)| *to = *from);
    let bits = u64::from_le_bytes(padded);
    match data_type {
        DataType::Bool => Value::from(bits != 0),
        DataType::Int8 => Value::from(bits as i8),
        DataType::Int16 => Value::from(bits as i16),
        DataType::Int32 => Value::from(bits as i32),
        DataType::Int64 => Value::from(bits as i64),
        DataType::Fp16 => Value::from(f16::from_bits(bits as u16).to_f64()),
        DataType::Bf16 => Value::from(bf16::from_bits(bits as u16).to_f64()),
        DataType::Fp32 => Value::from(f64::from(f32::from_bits(bits as u32))),
        DataType::Fp64 => Value::from(f64::from_bits(bits)),
        _ => Value::from(bits),
    }
}
