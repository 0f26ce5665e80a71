//! Element types: the numbers of `c10::ScalarType`, which PyTorch keeps stable.

use galatea_types::DataType;

/// Returns the number of a type, or `None` if PyTorch has no such tensors, or hardly any operation for them.
pub(crate) fn scalar_type_of(data_type: DataType) -> Option<i32> {
    Some(match data_type {
        DataType::Uint8 => 0,
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 3,
        DataType::Int64 => 4,
        DataType::Fp16 => 5,
        DataType::Fp32 => 6,
        DataType::Fp64 => 7,
        DataType::Bool => 11,
        DataType::Bf16 => 15,
        DataType::Uint16 | DataType::Uint32 | DataType::Uint64 | DataType::Bytes => return None,
    })
}

/// Returns the data type, or `None` if no request can carry it, e.g. complex numbers.
pub(crate) fn data_type_of(scalar_type: i32) -> Option<DataType> {
    DataType::ALL.into_iter().find(|&t| scalar_type_of(t) == Some(scalar_type))
}
