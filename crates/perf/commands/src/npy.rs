//! Reader and writer of NumPy's file format `.npy`, an array of numbers.

use galatea_client::OutputTensor;
use galatea_types::DataType;

use crate::elements::{self, Elements};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest head, and most dimensions.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_DIMENSIONS: usize = 64;
/// The data of a file begin at a multiple of this number of bytes.
const ALIGNMENT: usize = 64;

/// The reason why a file cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NpyError {
    #[error("this is not a .npy file, or its head is damaged")]
    Head,
    #[error(
        "the .npy file holds elements of type {0}; only little-endian numbers and booleans can be read"
    )]
    Type(String),
    #[error("the .npy file is in Fortran's order; save it with numpy.ascontiguousarray")]
    Order,
    #[error("the .npy file has {found} bytes of data, its shape says {expected}")]
    Length { found: usize, expected: usize },
    #[error("element {at} of the .npy file, {text}, is not a value of {data_type}")]
    Element { at: usize, text: String, data_type: DataType },
    #[error("{0} cannot be saved as .npy; .json and .bin can hold it")]
    NoForm(DataType),
}

/// Reads elements and their shape. They are converted to the wanted type if no element loses precision.
pub(crate) fn read(bytes: &[u8], wanted: DataType) -> Result<(Vec<u8>, Vec<i64>), NpyError> {
    let (head, data) = parts(bytes).ok_or(NpyError::Head)?;
    let name = field(head, "descr").and_then(|rest| rest.trim_start().strip_prefix(['\'', '"']));
    let name = name.and_then(|rest| rest.split(['\'', '"']).next()).ok_or(NpyError::Head)?;
    let found = data_type(name).ok_or_else(|| NpyError::Type(name.chars().take(20).collect()))?;
    if field(head, "fortran_order").is_some_and(|rest| rest.trim_start().starts_with("True")) {
        return Err(NpyError::Order);
    }
    let shape = field(head, "shape").and_then(shape).ok_or(NpyError::Head)?;
    let size = found.byte_size().unwrap_or(1);
    let count =
        shape.iter().try_fold(size, |product, &n| product.checked_mul(usize::try_from(n).ok()?));
    let expected = count.ok_or(NpyError::Head)?;
    if data.len() != expected {
        return Err(NpyError::Length { found: data.len(), expected });
    }
    match found == wanted {
        true => Ok((data.to_vec(), shape)),
        false => Ok((converted(data, found, wanted)?, shape)),
    }
}

fn parts(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => {
            (usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?, rest)
        }
        _ => return None,
    };
    let (head, data) = rest.split_at_checked(length).filter(|_| length <= LONGEST_HEAD)?;
    Some((std::str::from_utf8(head).ok()?, data))
}

/// Returns the text after `'name':` in the head, which is a Python dictionary.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let quoted = ['\'', '"'].map(|quote| format!("{quote}{name}{quote}"));
    let behind = quoted.iter().find_map(|name| head.split_once(name.as_str()))?.1;
    behind.trim_start().strip_prefix(':')
}

fn shape(rest: &str) -> Option<Vec<i64>> {
    let inner = rest.trim_start().strip_prefix('(')?.split_once(')')?.0;
    let sizes = inner.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes: Vec<i64> = sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?;
    (sizes.len() <= MOST_DIMENSIONS && sizes.iter().all(|&size| size >= 0)).then_some(sizes)
}

fn converted(data: &[u8], found: DataType, wanted: DataType) -> Result<Vec<u8>, NpyError> {
    let tensor = OutputTensor {
        name: String::new(),
        data_type: found,
        shape: Vec::new(),
        data: data.to_vec().into(),
    };
    let elements = Elements::of(&tensor);
    let mut made = Vec::new();
    for at in 0..elements.len() {
        let text = elements.json(at);
        let number = text.trim_matches('"');
        elements::push(&mut made, wanted, number).ok_or_else(|| NpyError::Element {
            at,
            text: number.to_owned(),
            data_type: wanted,
        })?;
    }
    Ok(made)
}

const NAMES: &[(DataType, &str)] = &[
    (DataType::Bool, "|b1"),
    (DataType::Uint8, "|u1"),
    (DataType::Uint16, "<u2"),
    (DataType::Uint32, "<u4"),
    (DataType::Uint64, "<u8"),
    (DataType::Int8, "|i1"),
    (DataType::Int16, "<i2"),
    (DataType::Int32, "<i4"),
    (DataType::Int64, "<i8"),
    (DataType::Fp16, "<f2"),
    (DataType::Fp32, "<f4"),
    (DataType::Fp64, "<f8"),
];

fn data_type(name: &str) -> Option<DataType> {
    NAMES.iter().find(|(_, known)| *known == name).map(|(data_type, _)| *data_type)
}

/// Returns a file that `numpy.load` reads.
pub(crate) fn written(tensor: &OutputTensor) -> Result<Vec<u8>, NpyError> {
    let name = NAMES.iter().find(|(data_type, _)| *data_type == tensor.data_type);
    let (_, name) = name.ok_or(NpyError::NoForm(tensor.data_type))?;
    let sizes: String = tensor.shape.iter().map(|size| format!("{size}, ")).collect();
    let mut head =
        format!("{{'descr': '{name}', 'fortran_order': False, 'shape': ({}), }}", sizes.trim_end());
    // The magic, the version and the length precede the head, and a line break follows it.
    let front = MAGIC.len() + 4;
    let whole = (front + head.len() + 1).next_multiple_of(ALIGNMENT);
    head.extend(std::iter::repeat_n(' ', whole - front - head.len() - 1));
    head.push('\n');
    let length = u16::try_from(head.len()).map_err(|_| NpyError::Head)?;
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), head.as_bytes(), &tensor.data].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64], data: &[u8]) -> OutputTensor {
        let (name, data) = (String::new(), data.to_vec().into());
        OutputTensor { name, data_type: DataType::Int16, shape: shape.to_vec(), data }
    }

    #[test]
    fn written_arrays_are_read_back() {
        let file = written(&tensor(&[2, 1], &[1, 0, 255, 255])).expect("a form");
        assert_eq!((file.len() - 4) % ALIGNMENT, 0);
        assert_eq!(read(&file, DataType::Int16), Ok((vec![1, 0, 255, 255], vec![2, 1])));
        assert_eq!(read(&file, DataType::Int8), Ok((vec![1, 255], vec![2, 1])));
        assert_eq!(read(&file, DataType::Fp32).map(|(data, _)| data.len()), Ok(8));
        assert!(matches!(read(&file, DataType::Uint8), Err(NpyError::Element { at: 1, .. })));
        let scalar = written(&tensor(&[], &[7, 0])).expect("a form");
        assert_eq!(read(&scalar, DataType::Int16), Ok((vec![7, 0], vec![])));
    }

    #[test]
    fn damaged_files_are_refused() {
        let file = written(&tensor(&[2], &[1, 0, 2, 0])).expect("a form");
        for length in 0..file.len() {
            assert!(read(&file[..length], DataType::Int16).is_err(), "{length}");
        }
        let with = |from: &str, to: &str| {
            let text = String::from_utf8_lossy(&file[10..]).replace(from, to);
            [&file[..10], text.as_bytes()].concat()
        };
        assert_eq!(
            read(&with("<i2", ">i2"), DataType::Int16),
            Err(NpyError::Type(">i2".to_owned()))
        );
        assert_eq!(read(&with("(2,)", "(-2,"), DataType::Int16), Err(NpyError::Head));
        assert!(matches!(read(&with("False", "True "), DataType::Int16), Err(NpyError::Order)));
        let huge = with("(2,), }", &format!("({},)}}", i64::MAX));
        assert!(read(&huge, DataType::Int16).is_err());
    }
}
