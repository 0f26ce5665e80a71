//! One layer of an IR file.

use galatea_types::DataType;

use super::Declared;
use crate::openvino::TensorInfo;

/// The fields of a layer that are read.
#[derive(Default)]
pub(super) struct Layer {
    pub id: String,
    pub kind: String,
    pub output_names: String,
    /// Shape of an input. `None`: the file does not give it.
    pub shape: Option<String>,
    pub element_type: String,
    /// Place and size of a constant among the weights.
    pub weights: (u64, u64),
    pub has_batch: bool,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// An input or output port of a layer.
#[derive(Default)]
pub(super) struct Port {
    pub id: String,
    pub precision: String,
    pub names: String,
    pub dims: Vec<i64>,
    pub has_batch: bool,
}

impl Layer {
    pub fn weights_end(&self) -> u64 {
        match self.kind.as_str() {
            "Const" => self.weights.0.saturating_add(self.weights.1),
            _ => 0,
        }
    }

    pub fn as_input(&self) -> Declared {
        let port = self.outputs.first();
        let dims = match &self.shape {
            Some(shape) => shape_of(shape),
            None => port.map(|port| port.dims.clone()).filter(|dims| !dims.is_empty()),
        };
        let info = TensorInfo {
            name: port.map(|port| first_name(&port.names)).unwrap_or_default(),
            data_type: data_type(&self.element_type),
            dims,
        };
        Declared { info, has_batch: self.has_batch || port.is_some_and(|port| port.has_batch) }
    }

    /// Returns the output of this port. A port without dimensions is a scalar, or leaves their number open.
    pub fn as_output(&self) -> Declared {
        let port = self.inputs.first();
        let info = TensorInfo {
            name: first_name(&self.output_names),
            data_type: port.and_then(|port| data_type(&port.precision)),
            dims: port.map(|port| port.dims.clone()).filter(|dims| !dims.is_empty()),
        };
        Declared { info, has_batch: self.has_batch || port.is_some_and(|port| port.has_batch) }
    }
}

/// Returns the first of several names in alphabetical order, as OpenVINO does. Commas separate names; one inside a name has
/// a backslash before it.
pub(super) fn first_name(names: &str) -> String {
    let mut all = vec![String::new()];
    let mut characters = names.chars();
    while let Some(character) = characters.next() {
        match character {
            ',' => all.push(String::new()),
            '\\' => all.extend_last(characters.next()),
            other => all.extend_last(Some(other)),
        }
    }
    all.into_iter().filter(|name| !name.is_empty()).min().unwrap_or_default()
}

trait ExtendLast {
    fn extend_last(&mut self, character: Option<char>);
}

impl ExtendLast for Vec<String> {
    fn extend_last(&mut self, character: Option<char>) {
        if let Some(last) = self.last_mut() {
            last.extend(character);
        }
    }
}

/// Parses a shape: `?,3,1..8` has open dimensions, `...` any number of them, an empty text is a scalar.
fn shape_of(text: &str) -> Option<Vec<i64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',')
        .map(|dim| match dim.trim() {
            "..." => None,
            "?" => Some(-1),
            range if range.contains("..") => Some(-1),
            size => size.parse().ok().map(|size: i64| size.max(-1)),
        })
        .collect()
}

/// Parses a type, which files write in two ways.
fn data_type(name: &str) -> Option<DataType> {
    Some(match name.to_ascii_lowercase().as_str() {
        "boolean" | "bool" => DataType::Bool,
        "bf16" => DataType::Bf16,
        "f16" | "fp16" => DataType::Fp16,
        "f32" | "fp32" => DataType::Fp32,
        "f64" | "fp64" => DataType::Fp64,
        "i8" => DataType::Int8,
        "i16" => DataType::Int16,
        "i32" => DataType::Int32,
        "i64" => DataType::Int64,
        "u8" => DataType::Uint8,
        "u16" => DataType::Uint16,
        "u32" => DataType::Uint32,
        "u64" => DataType::Uint64,
        "string" => DataType::Bytes,
        _ => return None,
    })
}

/// Returns true if a layout such as `[N,C,H,W]` or `[N,...]` begins with the batch.
pub(super) fn begins_with_batch(layout: &str) -> bool {
    layout.trim().trim_start_matches('[').trim_start().starts_with(['N', 'n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_names_shapes_and_layouts_are_read() {
        assert_eq!(first_name("b,a\\,x"), "a,x");
        assert_eq!(first_name(""), "");
        assert_eq!(shape_of("?,3,1..8"), Some(vec![-1, 3, -1]));
        assert_eq!((shape_of(""), shape_of("..."), shape_of("x")), (Some(vec![]), None, None));
        assert!(begins_with_batch("[N,C]") && begins_with_batch("N..."));
        assert!(!begins_with_batch("[C,N]") && !begins_with_batch(""));
    }
}
