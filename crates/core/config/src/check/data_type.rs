//! The data types of the message.

use galatea_proto::inference;
use galatea_types::DataType;

/// `None` for the invalid type and for numbers no type has.
pub(super) fn data_type(number: i32) -> Option<DataType> {
    use inference::DataType as Raw;
    Some(match Raw::try_from(number).ok()? {
        Raw::TypeInvalid => return None,
        Raw::TypeBool => DataType::Bool,
        Raw::TypeUint8 => DataType::Uint8,
        Raw::TypeUint16 => DataType::Uint16,
        Raw::TypeUint32 => DataType::Uint32,
        Raw::TypeUint64 => DataType::Uint64,
        Raw::TypeInt8 => DataType::Int8,
        Raw::TypeInt16 => DataType::Int16,
        Raw::TypeInt32 => DataType::Int32,
        Raw::TypeInt64 => DataType::Int64,
        Raw::TypeFp16 => DataType::Fp16,
        Raw::TypeFp32 => DataType::Fp32,
        Raw::TypeFp64 => DataType::Fp64,
        Raw::TypeString => DataType::Bytes,
        Raw::TypeBf16 => DataType::Bf16,
    })
}
