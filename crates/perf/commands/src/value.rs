//! The value of an input as it is typed: numbers, JSON, a text, a file, `zeros` or `random`.

use std::{fs::File, io::Read};

use galatea_types::{DataType, byte_strings};
use serde_json::Value;

use crate::{elements, shape::Given};

/// The longest file that is read, and the longest input that is made, in bytes.
const LIMIT: usize = 256 << 20;

/// Elements in their wire form, and what is known of their shape.
#[derive(Debug, PartialEq)]
pub(crate) struct Elements {
    pub data: Vec<u8>,
    pub given: Given,
}

/// Why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("'{text}' is no {data_type}")]
    Element { text: String, data_type: DataType },
    #[error("cannot read '{path}': {reason}")]
    File { path: String, reason: std::io::Error },
    #[error("it is longer than {LIMIT} bytes")]
    TooLong,
    #[error("'{0}' must end in .json, .txt or .bin, so that it is clear how to read it")]
    Ending(String),
    #[error("the file has {length} bytes, elements of {data_type} have {size} each")]
    Raw { length: usize, size: usize, data_type: DataType },
    #[error("this is no JSON: {0}")]
    Json(serde_json::Error),
    #[error("the lists of the JSON are not all of one length")]
    Ragged,
}

/// Reads a value of this type, but for `zeros` and `random`.
pub(crate) fn read(text: &str, data_type: DataType) -> Result<Elements, ValueError> {
    if let Some(path) = text.strip_prefix('@') {
        return file(path, data_type);
    }
    if text.starts_with('[') {
        match serde_json::from_str(text) {
            Ok(value) => return json(&value, data_type),
            Err(error) if data_type != DataType::Bytes => return Err(ValueError::Json(error)),
            Err(_) => {}
        }
    }
    match data_type {
        DataType::Bytes => texts([text.as_bytes()].into_iter()),
        _ => numbers(text, data_type),
    }
}

/// So many elements, zero or random; of BYTES empty texts or random letters.
pub(crate) fn fill(
    count: usize,
    data_type: DataType,
    is_random: bool,
) -> Result<Vec<u8>, ValueError> {
    // A BYTES element has its length before it, and eight letters if it is random.
    let bytes = count.checked_mul(data_type.byte_size().unwrap_or(12));
    let bytes = bytes.filter(|&bytes| bytes <= LIMIT).ok_or(ValueError::TooLong)?;
    if !is_random {
        return Ok(vec![0; count * data_type.byte_size().unwrap_or(4)]);
    }
    let mut data = Vec::with_capacity(bytes);
    (0..count).for_each(|_| elements::push_random(&mut data, data_type));
    Ok(data)
}

fn file(path: &str, data_type: DataType) -> Result<Elements, ValueError> {
    let refuse = |reason| ValueError::File { path: path.to_owned(), reason };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(refuse)?;
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(refuse)?;
    if bytes.len() > LIMIT {
        return Err(ValueError::TooLong);
    }
    let is = |ending: &str| path.to_ascii_lowercase().ends_with(ending);
    if is(".json") {
        return json(&serde_json::from_slice(&bytes).map_err(ValueError::Json)?, data_type);
    }
    match data_type.byte_size() {
        None if is(".txt") => {
            let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            texts(text.split(|&byte| byte == b'\n'))
        }
        None => texts([&bytes[..]].into_iter()),
        Some(_) if is(".txt") => numbers(&String::from_utf8_lossy(&bytes), data_type),
        Some(size) if is(".bin") => {
            let length = bytes.len();
            if !length.is_multiple_of(size) {
                return Err(ValueError::Raw { length, size, data_type });
            }
            Ok(Elements { data: bytes, given: Given::Count(length / size) })
        }
        Some(_) => Err(ValueError::Ending(path.to_owned())),
    }
}

fn texts<'a>(elements: impl Iterator<Item = &'a [u8]>) -> Result<Elements, ValueError> {
    let (mut data, mut count) = (Vec::new(), 0);
    for element in elements {
        byte_strings::push(&mut data, element).map_err(|_| ValueError::TooLong)?;
        count += 1;
    }
    Ok(Elements { data, given: Given::Count(count) })
}

/// With commas or blanks between them.
fn numbers(text: &str, data_type: DataType) -> Result<Elements, ValueError> {
    let (mut data, mut count) = (Vec::new(), 0);
    for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty())
    {
        push(&mut data, data_type, word)?;
        count += 1;
    }
    Ok(Elements { data, given: Given::Count(count) })
}

fn json(value: &Value, data_type: DataType) -> Result<Elements, ValueError> {
    let mut shape = Vec::new();
    let mut inner = value;
    while let Value::Array(list) = inner {
        shape.push(list.len() as i64);
        let Some(first) = list.first() else { break };
        inner = first;
    }
    let mut data = Vec::new();
    push_json(&mut data, data_type, value, &shape)?;
    let given = match shape[..] {
        [] => Given::Count(1),
        [count] => Given::Count(count as usize),
        _ => Given::Nested(shape),
    };
    Ok(Elements { data, given })
}

fn push_json(
    data: &mut Vec<u8>,
    data_type: DataType,
    value: &Value,
    shape: &[i64],
) -> Result<(), ValueError> {
    match (value, shape) {
        (Value::Array(list), [length, inner @ ..]) if list.len() as i64 == *length => {
            list.iter().try_for_each(|value| push_json(data, data_type, value, inner))
        }
        (Value::Array(_), _) | (_, [_, ..]) => Err(ValueError::Ragged),
        (Value::String(text), []) if data_type == DataType::Bytes => {
            byte_strings::push(data, text.as_bytes()).map_err(|_| ValueError::TooLong)
        }
        (Value::String(text), []) => push(data, data_type, text),
        (other, []) => push(data, data_type, &other.to_string()),
    }
}

fn push(data: &mut Vec<u8>, data_type: DataType, text: &str) -> Result<(), ValueError> {
    let refused = || ValueError::Element { text: text.chars().take(40).collect(), data_type };
    elements::push(data, data_type, text).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let of = |text, data_type| read(text, data_type).expect(text);
        assert_eq!(
            of("1, 2 3", DataType::Uint8),
            Elements { data: vec![1, 2, 3], given: Given::Count(3) }
        );
        let nested = Elements { data: vec![1, 2, 3, 4], given: Given::Nested(vec![2, 2]) };
        assert_eq!(of("[[1,2],[3,4]]", DataType::Uint8), nested);
        assert_eq!(of("a,b", DataType::Bytes).data, b"\x03\0\0\0a,b");
        assert_eq!(of(r#"["a",""]"#, DataType::Bytes).data, b"\x01\0\0\0a\0\0\0\0");
        assert_eq!(of("[a", DataType::Bytes).given, Given::Count(1));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, expected) in [
            ("1,x", "'x' is no INT32"),
            ("[1.5]", "'1.5' is no INT32"),
            ("[[1],[2,3]]", "not all of one length"),
            ("[1", "no JSON"),
            ("@/nonexistent.json", "cannot read '/nonexistent.json'"),
        ] {
            let error = read(text, DataType::Int32).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(fill(usize::MAX, DataType::Fp32, false).is_err());
        assert_eq!(fill(2, DataType::Bytes, true).expect("short").len(), 24);
    }
}
