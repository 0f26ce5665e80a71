//! Element types by TensorFlow's numbers.

use galatea_types::DataType;

/// Numbers and names of all types. `None`: no request can carry it.
const TYPES: &[(i32, &str, Option<DataType>)] = &[
    (1, "float", Some(DataType::Fp32)),
    (2, "double", Some(DataType::Fp64)),
    (3, "int32", Some(DataType::Int32)),
    (4, "uint8", Some(DataType::Uint8)),
    (5, "int16", Some(DataType::Int16)),
    (6, "int8", Some(DataType::Int8)),
    (STRING, "string", Some(DataType::Bytes)),
    (8, "complex64", None),
    (9, "int64", Some(DataType::Int64)),
    (10, "bool", Some(DataType::Bool)),
    (11, "qint8", None),
    (12, "quint8", None),
    (13, "qint32", None),
    (14, "bfloat16", Some(DataType::Bf16)),
    (15, "qint16", None),
    (16, "quint16", None),
    (17, "uint16", Some(DataType::Uint16)),
    (18, "complex128", None),
    (19, "half", Some(DataType::Fp16)),
    (20, "resource", None),
    (21, "variant", None),
    (22, "uint32", Some(DataType::Uint32)),
    (23, "uint64", Some(DataType::Uint64)),
];

/// Number of the type of texts.
pub(super) const STRING: i32 = 7;
/// Offset that is added to the number of a type if a tensor is a variable of TensorFlow 1.
const REFERENCE: i32 = 100;

fn plain(number: i32) -> i32 {
    if number > REFERENCE { number - REFERENCE } else { number }
}

/// Returns the data type, or `None` if no request can carry it.
pub(crate) fn data_type_of(number: i32) -> Option<DataType> {
    TYPES
        .iter()
        .find(|(known, ..)| *known == plain(number))
        .and_then(|(_, _, data_type)| *data_type)
}

pub(crate) fn type_number(data_type: DataType) -> i32 {
    let found = TYPES.iter().find(|(_, _, known)| *known == Some(data_type));
    found.map_or(0, |(number, ..)| *number)
}

/// Returns TensorFlow's name of a type.
pub(crate) fn type_name(number: i32) -> String {
    let found = TYPES.iter().find(|(known, ..)| *known == plain(number));
    found.map_or_else(|| format!("type number {number}"), |(_, name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_data_type_has_a_number() {
        for data_type in DataType::ALL {
            assert_eq!(data_type_of(type_number(data_type)), Some(data_type));
        }
        assert_eq!(data_type_of(101), Some(DataType::Fp32), "a variable of TensorFlow 1");
        assert_eq!((data_type_of(20), type_name(20).as_str()), (None, "resource"));
        assert_eq!(type_name(77), "type number 77");
    }
}
