//! An element of a tensor: from text to bytes.

use galatea_types::DataType;
use half::{bf16, f16};

/// Returns the bytes of an element; `None` when the text is no value of this type.
pub(super) fn element(data_type: DataType, text: &str) -> Option<Vec<u8>> {
    macro_rules! bytes {
        ($type:ty) => {
            text.parse::<$type>().ok()?.to_le_bytes().to_vec()
        };
    }
    Some(match data_type {
        DataType::Bool => match text {
            "0" | "false" => vec![0],
            "1" | "true" => vec![1],
            _ => return None,
        },
        DataType::Uint8 => bytes!(u8),
        DataType::Uint16 => bytes!(u16),
        DataType::Uint32 => bytes!(u32),
        DataType::Uint64 => bytes!(u64),
        DataType::Int8 => bytes!(i8),
        DataType::Int16 => bytes!(i16),
        DataType::Int32 => bytes!(i32),
        DataType::Int64 => bytes!(i64),
        DataType::Fp16 => f16::from_f32(text.parse().ok()?).to_le_bytes().to_vec(),
        DataType::Bf16 => bf16::from_f32(text.parse().ok()?).to_le_bytes().to_vec(),
        DataType::Fp32 => bytes!(f32),
        DataType::Fp64 => bytes!(f64),
        DataType::Bytes => text.as_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_the_size_of_their_type() {
        assert_eq!(element(DataType::Int64, "-1"), Some(vec![0xff; 8]));
        assert_eq!(element(DataType::Fp16, "1"), Some(vec![0, 0x3c]));
        assert_eq!(element(DataType::Bf16, "1"), Some(vec![0x80, 0x3f]));
        assert_eq!(element(DataType::Fp32, "0.5"), Some(0.5_f32.to_le_bytes().to_vec()));
        assert_eq!(element(DataType::Bool, "true"), Some(vec![1]));
        assert_eq!(element(DataType::Bytes, "[PAD]"), Some(b"[PAD]".to_vec()));
        assert_eq!(element(DataType::Uint8, "-1"), None);
        assert_eq!(element(DataType::Int32, "x"), None);
        let numbers = DataType::ALL.into_iter().filter(|&t| t != DataType::Bytes);
        for data_type in numbers {
            let zero = element(data_type, "0").expect("a number");
            assert_eq!(Some(zero.len()), data_type.byte_size(), "{data_type}");
            assert!(zero.iter().all(|&byte| byte == 0), "{data_type}");
        }
    }
}
