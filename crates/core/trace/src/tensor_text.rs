//! The elements of a tensor as text.

use std::fmt::{self, Write};

use galatea_types::{DataType, Tensor};
use half::{bf16, f16};

/// Writes `text` as the content of a JSON string.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
}

/// A text that would be longer than its limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Returns the elements separated by commas, escaped for JSON. As in Triton, texts stand in quotes and floating point numbers
/// have six significant digits.
///
/// # Errors
/// The text would have more than `limit` bytes.
pub(crate) fn elements(tensor: &Tensor, limit: usize) -> Result<String, TooLong> {
    let data = tensor.data.to_host().map_err(|_| TooLong)?;
    let mut text = Text { out: String::new(), limit };
    macro_rules! numbers {
        ($type:ty, $width:literal) => {
            text.numbers::<$width>(&data, |bytes, out| {
                write!(out, "{}", <$type>::from_le_bytes(bytes))
            })
        };
    }
    match tensor.data_type {
        DataType::Bool => {
            text.numbers::<1>(&data, |[byte], out| write!(out, "{}", u8::from(byte != 0)))
        }
        DataType::Uint8 => numbers!(u8, 1),
        DataType::Uint16 => numbers!(u16, 2),
        DataType::Uint32 => numbers!(u32, 4),
        DataType::Uint64 => numbers!(u64, 8),
        DataType::Int8 => numbers!(i8, 1),
        DataType::Int16 => numbers!(i16, 2),
        DataType::Int32 => numbers!(i32, 4),
        DataType::Int64 => numbers!(i64, 8),
        DataType::Fp16 => text.numbers(&data, |b, out| float(f16::from_le_bytes(b).to_f64(), out)),
        DataType::Bf16 => text.numbers(&data, |b, out| float(bf16::from_le_bytes(b).to_f64(), out)),
        DataType::Fp32 => text.numbers(&data, |b, out| float(f32::from_le_bytes(b).into(), out)),
        DataType::Fp64 => text.numbers(&data, |b, out| float(f64::from_le_bytes(b), out)),
        DataType::Bytes => text.texts(&data),
    }?;
    text.out.shrink_to_fit();
    Ok(text.out)
}

struct Text {
    out: String,
    limit: usize,
}

impl Text {
    fn numbers<const WIDTH: usize>(
        &mut self,
        data: &[u8],
        mut write: impl FnMut([u8; WIDTH], &mut String) -> fmt::Result,
    ) -> Result<(), TooLong> {
        let (elements, _) = data.as_chunks::<WIDTH>();
        elements.iter().try_for_each(|bytes| {
            self.separate()?;
            write(*bytes, &mut self.out).map_err(|_| TooLong)
        })
    }

    /// Bytes that are no UTF-8 are replaced.
    fn texts(&mut self, mut data: &[u8]) -> Result<(), TooLong> {
        while let Some((length, rest)) = data.split_first_chunk::<4>() {
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let (element, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            self.separate()?;
            if element.len() > self.limit.saturating_sub(self.out.len()) {
                return Err(TooLong);
            }
            self.out.push_str("\\\"");
            for chunk in element.utf8_chunks() {
                self.escape_twice(chunk.valid());
                if !chunk.invalid().is_empty() {
                    self.out.push(char::REPLACEMENT_CHARACTER);
                }
            }
            self.out.push_str("\\\"");
            data = rest;
        }
        Ok(())
    }

    /// Writes a JSON text within a JSON text, so that a quote in it ends neither.
    fn escape_twice(&mut self, text: &str) {
        let mut once = String::new();
        for c in text.chars() {
            once.clear();
            escape(c.encode_utf8(&mut [0; 4]), &mut once);
            escape(&once, &mut self.out);
        }
    }

    fn separate(&mut self) -> Result<(), TooLong> {
        if self.out.len() > self.limit {
            return Err(TooLong);
        }
        if !self.out.is_empty() {
            self.out.push(',');
        }
        Ok(())
    }
}

/// Writes a number with six significant digits, as C++ streams do.
fn float(value: f64, out: &mut String) -> fmt::Result {
    if value == 0.0 || !value.is_finite() {
        return match value {
            v if v.is_nan() => out.write_str("nan"),
            v if v.is_infinite() => out.write_str(if v > 0.0 { "inf" } else { "-inf" }),
            v => out.write_str(if v.is_sign_negative() { "-0" } else { "0" }),
        };
    }
    let rounded = format!("{value:.5e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        return out.write_str(short(&format!("{value:.places$}")));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{}e{sign}{:02}", short(digits), exponent.abs())
}

/// Returns a number without the zeros behind its last digit.
fn short(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::byte_strings;
    use proptest::prelude::*;

    use super::*;

    fn text(data_type: DataType, data: Vec<u8>) -> String {
        elements(&Tensor::new("T", data_type, [1], data), 1 << 20).expect("short")
    }

    fn floats(values: &[f32]) -> String {
        text(DataType::Fp32, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    #[test]
    fn floats_have_six_significant_digits() {
        assert_eq!(floats(&[1e10, 16_777_217.0, 0.5, -3.0]), "1e+10,1.67772e+07,0.5,-3");
        assert_eq!(
            floats(&[0.0, 0.0001, 0.00001, 123_456.7, 999_999.6]),
            "0,0.0001,1e-05,123457,1e+06"
        );
        assert_eq!(floats(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]), "nan,inf,-inf");
    }

    #[test]
    fn small_types_are_numbers() {
        assert_eq!(text(DataType::Int8, vec![1, 255, 128]), "1,-1,-128");
        assert_eq!(text(DataType::Uint8, vec![1, 255]), "1,255");
        assert_eq!(text(DataType::Bool, vec![1, 0, 7]), "1,0,1");
        assert_eq!(text(DataType::Fp16, f16::from_f32(1.5).to_le_bytes().to_vec()), "1.5");
        assert_eq!(text(DataType::Bf16, bf16::from_f32(-2.0).to_le_bytes().to_vec()), "-2");
        assert_eq!(text(DataType::Int64, i64::MIN.to_le_bytes().to_vec()), i64::MIN.to_string());
    }

    fn packed(texts: &[&[u8]]) -> Tensor {
        let data = byte_strings::pack(texts).expect("short");
        Tensor::new("T", DataType::Bytes, [texts.len() as i64], data)
    }

    #[test]
    fn texts_stand_in_quotes() {
        assert_eq!(elements(&packed(&[b"ab", b""]), 99), Ok(r#"\"ab\",\"\""#.to_owned()));
        assert_eq!(elements(&packed(&[&[b'x'; 200]]), 99), Err(TooLong));
        let long = Tensor::new("T", DataType::Int8, [200], vec![1; 200]);
        assert_eq!(elements(&long, 99), Err(TooLong));
    }

    proptest! {
        /// What a reader of the file gets is the list of the elements.
        #[test]
        fn texts_survive(texts in proptest::collection::vec(".*", 0..4)) {
            let raw: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let inner = elements(&packed(&raw), 1 << 20).expect("short");
            let outer: String = serde_json::from_str(&format!("\"{inner}\"")).expect("a JSON text");
            let list: Vec<String> = serde_json::from_str(&format!("[{outer}]")).expect("a JSON list");
            prop_assert_eq!(list, texts);
        }

        #[test]
        fn no_bytes_break_the_text(data: Vec<u8>, which in 0..DataType::ALL.len()) {
            let tensor = Tensor::new("T", DataType::ALL[which], [1], data);
            let inner = elements(&tensor, 1 << 20).expect("short");
            let read: Result<String, _> = serde_json::from_str(&format!("\"{inner}\""));
            prop_assert!(read.is_ok());
        }

        #[test]
        fn a_float_is_read_back_to_six_digits(value in any::<f64>().prop_filter("finite", |v| v.is_normal())) {
            let mut text = String::new();
            float(value, &mut text).expect("written");
            let read: f64 = text.parse().expect("a number");
            prop_assert!((read - value).abs() <= value.abs() * 5.1e-6, "{} {}", value, text);
        }
    }
}
