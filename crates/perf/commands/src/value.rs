//! The typed value of an input: numbers, JSON, a text, a file, `zeros` or `random`.

use std::{
    fs::File,
    io::{self, Read},
};

use galatea_types::{DataType, byte_strings};
use serde_json::Value;

use crate::{
    audio::{self, AudioError},
    elements,
    npy::{self, NpyError},
    picture::{self, PictureError, PictureOptions},
    shape::KnownShape,
};

/// Longest file that is read, and longest input that is made, in bytes.
const LIMIT: usize = 256 << 20;

/// Elements in their wire form, and the known part of their shape.
#[derive(Debug, PartialEq)]
pub(crate) struct Elements {
    pub data: Vec<u8>,
    pub given: KnownShape,
    /// A note about the file for the user.
    pub note: Option<String>,
}

impl Elements {
    fn new(data: Vec<u8>, given: KnownShape) -> Self {
        Self { data, given, note: None }
    }
}

/// The input that a value is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedValue<'a> {
    pub data_type: DataType,
    /// The shape, with -1 where any size is possible.
    pub shape: &'a [i64],
    pub picture: PictureOptions,
}

/// The reason why a value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("'{text}' is not a value of {data_type}")]
    Element { text: String, data_type: DataType },
    #[error("cannot read '{path}': {reason}")]
    File { path: String, reason: std::io::Error },
    #[error("it is longer than {LIMIT} bytes")]
    TooLong,
    #[error(
        "'{0}' must end in .json, .txt, .bin, .npy, .png, .jpg or .wav, which tells the format"
    )]
    Ending(String),
    #[error("the file has {length} bytes, elements of {data_type} have {size} each")]
    Raw { length: usize, size: usize, data_type: DataType },
    #[error("this is not JSON: {0}")]
    Json(serde_json::Error),
    #[error("the lists of the JSON differ in length")]
    Ragged,
    #[error("{0}")]
    Npy(#[from] NpyError),
    #[error("{0}")]
    Picture(#[from] PictureError),
    #[error("{0}")]
    Audio(#[from] AudioError),
}

/// Reads a value of this type, except `zeros` and `random`.
pub(crate) fn read(text: &str, wanted: &WantedValue<'_>) -> Result<Elements, ValueError> {
    let data_type = wanted.data_type;
    if let Some(path) = text.strip_prefix('@') {
        return file(path, wanted);
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

/// Makes zero or random elements; of BYTES empty texts or random letters.
pub(crate) fn fill(
    count: usize,
    data_type: DataType,
    is_random: bool,
) -> Result<Vec<u8>, ValueError> {
    // A BYTES element has a 4-byte length before it, and eight letters if it is random.
    let bytes = count.checked_mul(data_type.byte_size().unwrap_or(12));
    let bytes = bytes.filter(|&bytes| bytes <= LIMIT).ok_or(ValueError::TooLong)?;
    if !is_random {
        return Ok(vec![0; count * data_type.byte_size().unwrap_or(4)]);
    }
    let mut data = Vec::with_capacity(bytes);
    (0..count).for_each(|_| elements::push_random(&mut data, data_type));
    Ok(data)
}

fn file(path: &str, wanted: &WantedValue<'_>) -> Result<Elements, ValueError> {
    let refuse = |reason| ValueError::File { path: path.to_owned(), reason };
    let bytes = match path {
        "-" => bounded(io::stdin().lock()).map_err(refuse)?,
        path => bounded(File::open(path).map_err(refuse)?).map_err(refuse)?,
    };
    if bytes.len() > LIMIT {
        return Err(ValueError::TooLong);
    }
    let is_bytes = wanted.data_type == DataType::Bytes;
    match ending(path, &bytes) {
        Some(ending) if is_opaque(ending, wanted) => raw(bytes, wanted.data_type),
        Some(ending) if is_bytes || takes_any_bytes(wanted) => {
            contents(&bytes, ending, wanted).or_else(|reason| whole(&bytes, &reason, wanted))
        }
        Some(ending) => contents(&bytes, ending, wanted),
        None if is_bytes => texts([&bytes[..]].into_iter()),
        None if wanted.data_type == DataType::Uint8 => raw(bytes, wanted.data_type),
        None => Err(ValueError::Ending(path.to_owned())),
    }
}

/// Returns true if a file with this ending can only be a row of bytes to the input: its contents would never fit.
fn is_opaque(ending: &str, wanted: &WantedValue<'_>) -> bool {
    let is_picture = || picture::takes_pictures(wanted.shape, &wanted.picture);
    wanted.data_type == DataType::Uint8
        && match ending {
            "wav" => true,
            "png" | "jpg" | "jpeg" => !is_picture(),
            _ => false,
        }
}

/// Returns true if the input accepts the unchanged bytes of a file of any length.
fn takes_any_bytes(wanted: &WantedValue<'_>) -> bool {
    wanted.data_type == DataType::Uint8
        && wanted.shape.contains(&-1)
        && wanted.shape.iter().all(|&size| matches!(size, -1 | 1))
}

/// Returns the bytes of a file whose contents do not fit, and a note about it.
fn whole(
    bytes: &[u8],
    reason: &ValueError,
    wanted: &WantedValue<'_>,
) -> Result<Elements, ValueError> {
    let elements = match wanted.data_type {
        DataType::Bytes => texts([bytes].into_iter())?,
        data_type => raw(bytes.to_vec(), data_type)?,
    };
    let note = format!("the bytes of the file are sent as they are, because {reason}");
    Ok(Elements { note: Some(note), ..elements })
}

fn bounded(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

const ENDINGS: &[&str] = &["json", "txt", "bin", "npy", "png", "jpg", "jpeg", "wav"];

/// Returns the ending that decides how a file is read. Standard input is recognized by its first bytes.
fn ending(path: &str, bytes: &[u8]) -> Option<&'static str> {
    if path == "-" {
        return Some(match bytes {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "npy",
            [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => "png",
            [b'R', b'I', b'F', b'F', ..] => "wav",
            [b'[', ..] => "json",
            _ => "txt",
        });
    }
    let (_, ending) = path.rsplit_once('.')?;
    ENDINGS.iter().find(|known| known.eq_ignore_ascii_case(ending)).copied()
}

fn contents(bytes: &[u8], ending: &str, wanted: &WantedValue<'_>) -> Result<Elements, ValueError> {
    let data_type = wanted.data_type;
    let is_bytes = data_type == DataType::Bytes;
    match ending {
        "json" => json(&serde_json::from_slice(bytes).map_err(ValueError::Json)?, data_type),
        "txt" if is_bytes => {
            let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            texts(text.split(|&byte| byte == b'\n'))
        }
        "txt" => numbers(&String::from_utf8_lossy(bytes), data_type),
        // The model decodes the bytes.
        _ if is_bytes => texts([bytes].into_iter()),
        "npy" => {
            let (data, shape) = npy::read(bytes, data_type)?;
            Ok(Elements::new(data, given(shape)))
        }
        "wav" => {
            let samples = audio::read(bytes, data_type)?;
            let given = KnownShape::Count(samples.count);
            Ok(Elements { data: samples.data, given, note: Some(samples.note) })
        }
        "bin" => raw(bytes.to_vec(), data_type),
        _ => {
            let (data, shape) = picture::tensor(bytes, wanted.shape, data_type, &wanted.picture)?;
            Ok(Elements::new(data, KnownShape::Nested(shape)))
        }
    }
}

fn raw(bytes: Vec<u8>, data_type: DataType) -> Result<Elements, ValueError> {
    let (length, size) = (bytes.len(), data_type.byte_size().unwrap_or(1));
    match length.is_multiple_of(size) {
        true => Ok(Elements::new(bytes, KnownShape::Count(length / size))),
        false => Err(ValueError::Raw { length, size, data_type }),
    }
}

/// Returns the shape to complete: a row can be completed, other shapes are final.
fn given(shape: Vec<i64>) -> KnownShape {
    match shape[..] {
        [] => KnownShape::Count(1),
        [count] => KnownShape::Count(count as usize),
        _ => KnownShape::Nested(shape),
    }
}

fn texts<'a>(elements: impl Iterator<Item = &'a [u8]>) -> Result<Elements, ValueError> {
    let (mut data, mut count) = (Vec::new(), 0);
    for element in elements {
        byte_strings::push(&mut data, element).map_err(|_| ValueError::TooLong)?;
        count += 1;
    }
    Ok(Elements::new(data, KnownShape::Count(count)))
}

/// Reads numbers with commas or blanks between them.
fn numbers(text: &str, data_type: DataType) -> Result<Elements, ValueError> {
    let (mut data, mut count) = (Vec::new(), 0);
    for word in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty())
    {
        push(&mut data, data_type, word)?;
        count += 1;
    }
    Ok(Elements::new(data, KnownShape::Count(count)))
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
    Ok(Elements::new(data, given(shape)))
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

    fn wanted(data_type: DataType) -> WantedValue<'static> {
        WantedValue { data_type, shape: &[-1], picture: PictureOptions::default() }
    }

    #[test]
    fn file_formats_are_known_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b"\x93NUMPY\x01"[..], "npy"),
            (b"\x89PNG\r", "png"),
            (b"RIFF", "wav"),
            (b"[1]", "json"),
            (b"1 2", "txt"),
        ] {
            assert_eq!(ending("-", bytes), Some(expected));
        }
        assert_eq!((ending("a/b.PNG", b""), ending("a.b/c", b"")), (Some("png"), None));
    }

    #[test]
    fn values_are_parsed() {
        let of = |text, data_type| read(text, &wanted(data_type)).expect(text);
        assert_eq!(
            of("1, 2 3", DataType::Uint8),
            Elements::new(vec![1, 2, 3], KnownShape::Count(3))
        );
        let nested = Elements::new(vec![1, 2, 3, 4], KnownShape::Nested(vec![2, 2]));
        assert_eq!(of("[[1,2],[3,4]]", DataType::Uint8), nested);
        assert_eq!(of("a,b", DataType::Bytes).data, b"\x03\0\0\0a,b");
        assert_eq!(of(r#"["a",""]"#, DataType::Bytes).data, b"\x01\0\0\0a\0\0\0\0");
        assert_eq!(of("[a", DataType::Bytes).given, KnownShape::Count(1));
    }

    #[test]
    fn files_of_any_extension_are_read_for_bytes_inputs() {
        let folder = tempfile::tempdir().expect("folder");
        let read_file = |name: &str, bytes: &[u8], wanted: &WantedValue<'_>| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            read(&format!("@{}", path.display()), wanted)
        };
        let row = wanted(DataType::Uint8);
        for name in ["sh", "a.dat", "a.tar.gz", "a.wav", "a.png", "a.jpeg"] {
            let elements = read_file(name, b"\x01\xff", &row).expect(name);
            assert_eq!(elements, Elements::new(vec![1, 255], KnownShape::Count(2)), "{name}");
        }
        for name in ["a.txt", "a.json", "a.npy"] {
            let elements = read_file(name, b"no numbers", &row).expect(name);
            assert_eq!(
                (&elements.data[..], elements.given),
                (&b"no numbers"[..], KnownShape::Count(10))
            );
            assert!(elements.note.is_some_and(|note| note.contains("as they are")), "{name}");
        }
        assert_eq!(read_file("n.txt", b"7 8", &row).expect("numbers").data, [7, 8]);
        let text = read_file("b.json", b"{", &wanted(DataType::Bytes)).expect("one element");
        assert_eq!(text.data, b"\x01\0\0\0{");
        assert!(text.note.is_some_and(|note| note.contains("not JSON")));
        let picture = WantedValue { shape: &[3, -1, -1], ..row };
        assert!(read_file("c.txt", b"no numbers", &picture).is_err(), "not any number will do");
        assert!(read_file("c.png", b"no picture", &picture).is_err());
        assert!(read_file("c.dat", b"x", &wanted(DataType::Fp32)).is_err());
    }

    #[test]
    fn unreadable_values_are_named() {
        for (text, expected) in [
            ("1,x", "'x' is not a value of INT32"),
            ("[1.5]", "'1.5' is not a value of INT32"),
            ("[[1],[2,3]]", "differ in length"),
            ("[1", "not JSON"),
            ("@/nonexistent.json", "cannot read '/nonexistent.json'"),
        ] {
            let error = read(text, &wanted(DataType::Int32)).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(fill(usize::MAX, DataType::Fp32, false).is_err());
        assert_eq!(fill(2, DataType::Bytes, true).expect("short").len(), 24);
    }
}
