//! Conversion of tensor elements: from typed texts to bytes, and from bytes to JSON texts.

use base64::{Engine, prelude::BASE64_STANDARD};
use galatea_client::OutputTensor;
use galatea_types::{DataType, byte_strings};
use half::{bf16, f16};
use serde_json::json;

/// Appends the element that `text` holds; `None`: it holds none of that type. Not for BYTES.
pub(crate) fn push(data: &mut Vec<u8>, data_type: DataType, text: &str) -> Option<()> {
    macro_rules! whole {
        ($type:ty) => {
            data.extend(text.parse::<$type>().ok()?.to_le_bytes())
        };
    }
    match data_type {
        DataType::Bool => data.push(truth(text)?),
        DataType::Uint8 => whole!(u8),
        DataType::Uint16 => whole!(u16),
        DataType::Uint32 => whole!(u32),
        DataType::Uint64 => whole!(u64),
        DataType::Int8 => whole!(i8),
        DataType::Int16 => whole!(i16),
        DataType::Int32 => whole!(i32),
        DataType::Int64 => whole!(i64),
        DataType::Fp16 => {
            data.extend(rounded(text, f16::from_f64, f16::is_infinite)?.to_le_bytes())
        }
        DataType::Bf16 => {
            data.extend(rounded(text, bf16::from_f64, bf16::is_infinite)?.to_le_bytes())
        }
        DataType::Fp32 => {
            data.extend(rounded(text, |n| n as f32, |n| n.is_infinite())?.to_le_bytes())
        }
        DataType::Fp64 => data.extend(rounded(text, |n| n, |n| n.is_infinite())?.to_le_bytes()),
        DataType::Bytes => return None,
    }
    Some(())
}

fn truth(text: &str) -> Option<u8> {
    match text {
        "true" | "1" => Some(1),
        "false" | "0" => Some(0),
        _ => None,
    }
}

/// Converts a number; `None` if it is too large for the type. Infinity must be written as such.
fn rounded<T: Copy>(
    text: &str,
    round: impl Fn(f64) -> T,
    is_infinite: impl Fn(T) -> bool,
) -> Option<T> {
    let number = round(text.parse::<f64>().ok()?);
    let says_infinity = text.to_ascii_lowercase().contains("inf");
    (!is_infinite(number) || says_infinity).then_some(number)
}

/// Appends a random element: 0 to 100, floating-point numbers 0 to 1, for BYTES eight letters.
pub(crate) fn push_random(data: &mut Vec<u8>, data_type: DataType) {
    use DataType::{Bf16, Bool, Bytes, Fp16, Fp32, Fp64};
    let text = match data_type {
        Bytes => {
            let letters: Vec<u8> = (0..8).map(|_| fastrand::lowercase() as u8).collect();
            // Eight letters are not too long.
            let _ = byte_strings::push(data, &letters);
            return;
        }
        Bool => fastrand::u8(0..2).to_string(),
        Fp16 | Bf16 | Fp32 | Fp64 => fastrand::f64().to_string(),
        _ => fastrand::u8(0..=100).to_string(),
    };
    let _ = push(data, data_type, &text);
}

/// The elements of a response's tensor.
pub(crate) struct Elements<'a> {
    data_type: DataType,
    data: &'a [u8],
    /// The elements of a BYTES tensor.
    texts: Vec<&'a [u8]>,
}

impl<'a> Elements<'a> {
    /// Returns the elements of a tensor. An incomplete element at the end is left out.
    pub fn of(tensor: &'a OutputTensor) -> Self {
        let texts = match tensor.data_type {
            DataType::Bytes => byte_strings::elements(&tensor.data).map_while(Result::ok).collect(),
            _ => Vec::new(),
        };
        Self { data_type: tensor.data_type, data: &tensor.data, texts }
    }

    pub fn len(&self) -> usize {
        self.data_type.byte_size().map_or(self.texts.len(), |size| self.data.len() / size)
    }

    /// Returns an element as JSON: NaN and infinity are strings, bytes that are not UTF-8 are `{"b64": ...}`.
    pub fn json(&self, at: usize) -> String {
        let Some(size) = self.data_type.byte_size() else {
            return self.texts.get(at).map(|text| text_json(text)).unwrap_or_default();
        };
        self.data
            .get(at * size..(at + 1) * size)
            .map(|e| number(self.data_type, e))
            .unwrap_or_default()
    }
}

fn text_json(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text).to_string(),
        Err(_) => json!({ "b64": BASE64_STANDARD.encode(bytes) }).to_string(),
    }
}

fn number(data_type: DataType, element: &[u8]) -> String {
    macro_rules! whole {
        ($type:ty) => {
            element
                .try_into()
                .map(|bytes| <$type>::from_le_bytes(bytes).to_string())
                .unwrap_or_default()
        };
    }
    macro_rules! float {
        ($type:ty, $into:ty) => {
            element
                .try_into()
                .map(|b| float_json(<$into>::from(<$type>::from_le_bytes(b))))
                .unwrap_or_default()
        };
    }
    match data_type {
        DataType::Bool => (element != [0]).to_string(),
        DataType::Uint8 => whole!(u8),
        DataType::Uint16 => whole!(u16),
        DataType::Uint32 => whole!(u32),
        DataType::Uint64 => whole!(u64),
        DataType::Int8 => whole!(i8),
        DataType::Int16 => whole!(i16),
        DataType::Int32 => whole!(i32),
        DataType::Int64 => whole!(i64),
        DataType::Fp16 => float!(f16, f32),
        DataType::Bf16 => float!(bf16, f32),
        DataType::Fp32 => float!(f32, f32),
        DataType::Fp64 => float!(f64, f64),
        DataType::Bytes => String::new(),
    }
}

/// Returns the shortest text that is read as the same number of that type.
fn float_json<T: Copy + Into<f64> + ToString + std::fmt::LowerExp>(number: T) -> String {
    let wide: f64 = number.into();
    match wide {
        _ if wide.is_nan() => r#""NaN""#.to_owned(),
        _ if wide.is_infinite() && wide > 0.0 => r#""Infinity""#.to_owned(),
        _ if wide.is_infinite() => r#""-Infinity""#.to_owned(),
        // Without an exponent these would have many zeros.
        _ if wide != 0.0 && !(1e-5..1e16).contains(&wide.abs()) => format!("{number:e}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(data_type: DataType, texts: &[&str]) -> Vec<String> {
        let mut data = Vec::new();
        texts.iter().for_each(|text| push(&mut data, data_type, text).expect(text));
        let (name, shape) = ("x".to_owned(), vec![texts.len() as i64]);
        let tensor = OutputTensor { name, data_type, shape, data: data.into() };
        let elements = Elements::of(&tensor);
        (0..elements.len()).map(|at| elements.json(at)).collect()
    }

    #[test]
    fn typed_values_are_encoded_and_printed_back() {
        assert_eq!(back(DataType::Int64, &["-9223372036854775808"]), ["-9223372036854775808"]);
        assert_eq!(back(DataType::Uint64, &["18446744073709551615"]), ["18446744073709551615"]);
        assert_eq!(back(DataType::Bool, &["true", "0"]), ["true", "false"]);
        assert_eq!(
            back(DataType::Fp32, &["0.1", "-2", "nan", "-inf"]),
            ["0.1", "-2", "\"NaN\"", "\"-Infinity\""]
        );
        assert_eq!(back(DataType::Fp16, &["0.5", "1"]), ["0.5", "1"]);
        assert_eq!(back(DataType::Bf16, &["-2"]), ["-2"]);
        assert_eq!(back(DataType::Fp64, &["1e300", "0"]), ["1e300", "0"]);
    }

    #[test]
    fn values_out_of_range_of_the_type_are_refused() {
        for (data_type, text) in [
            (DataType::Int8, "128"),
            (DataType::Uint8, "-1"),
            (DataType::Int32, "1.0"),
            (DataType::Fp16, "70000"),
            (DataType::Fp32, "1e39"),
            (DataType::Bool, "2"),
            (DataType::Fp64, ""),
        ] {
            assert_eq!(push(&mut Vec::new(), data_type, text), None, "{data_type} {text}");
        }
    }

    #[test]
    fn bytes_are_printed_as_text_if_possible() {
        assert_eq!(text_json("a\"é".as_bytes()), "\"a\\\"é\"");
        assert_eq!(text_json(&[0xff, 0]), r#"{"b64":"/wA="}"#);
    }
}
