//! Element types by the numbers of the C interface.

use std::ffi::c_int;

use galatea_types::DataType;

pub(crate) fn number_of(data_type: DataType) -> c_int {
    match data_type {
        DataType::Bool => 1,
        DataType::Bf16 => 2,
        DataType::Fp16 => 3,
        DataType::Fp32 => 4,
        DataType::Fp64 => 5,
        DataType::Int8 => 7,
        DataType::Int16 => 8,
        DataType::Int32 => 9,
        DataType::Int64 => 10,
        DataType::Uint8 => 16,
        DataType::Uint16 => 17,
        DataType::Uint32 => 18,
        DataType::Uint64 => 19,
        DataType::Bytes => 23,
    }
}

/// Returns the data type, or `None` if no request can carry it: types of less than a byte, 8-bit floats, dynamic types.
pub(crate) fn from_number(number: c_int) -> Option<DataType> {
    DataType::ALL.into_iter().find(|&data_type| number_of(data_type) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_type_has_its_own_number() {
        for data_type in DataType::ALL {
            assert_eq!(from_number(number_of(data_type)), Some(data_type));
        }
        assert_eq!([0, 6, 11, 20].map(from_number), [None; 4]);
    }
}
