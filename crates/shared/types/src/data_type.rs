//! Element types, with their names in the protocol and in a model configuration.

use std::fmt;

/// The element type of a tensor. `Bytes` is variable-sized: each element is a little-endian `u32` length and that many bytes, one
/// after another, on the wire and in every [`crate::Buffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// One byte: 0 is false.
    Bool,
    /// 8 bits, unsigned.
    Uint8,
    /// 16 bits, unsigned.
    Uint16,
    /// 32 bits, unsigned.
    Uint32,
    /// 64 bits, unsigned.
    Uint64,
    /// 8 bits, two's complement.
    Int8,
    /// 16 bits, two's complement.
    Int16,
    /// 32 bits, two's complement.
    Int32,
    /// 64 bits, two's complement.
    Int64,
    /// IEEE 754 binary16.
    Fp16,
    /// IEEE 754 binary32.
    Fp32,
    /// IEEE 754 binary64.
    Fp64,
    /// Any bytes, text among them.
    Bytes,
    /// The upper half of a binary32.
    Bf16,
}

crate::names! {
    /// Name in the KServe v2 protocol, e.g. `FP32` or `BYTES`.
    pub DataType::protocol_name {
        Bool = "BOOL", Uint8 = "UINT8", Uint16 = "UINT16", Uint32 = "UINT32", Uint64 = "UINT64", Int8 = "INT8",
        Int16 = "INT16", Int32 = "INT32", Int64 = "INT64", Fp16 = "FP16", Fp32 = "FP32", Fp64 = "FP64",
        Bytes = "BYTES", Bf16 = "BF16",
    }
}

impl DataType {
    /// Returns the name in a model configuration, e.g. `TYPE_FP32` or `TYPE_STRING`.
    pub fn config_name(self) -> &'static str {
        match self {
            DataType::Bool => "TYPE_BOOL",
            DataType::Uint8 => "TYPE_UINT8",
            DataType::Uint16 => "TYPE_UINT16",
            DataType::Uint32 => "TYPE_UINT32",
            DataType::Uint64 => "TYPE_UINT64",
            DataType::Int8 => "TYPE_INT8",
            DataType::Int16 => "TYPE_INT16",
            DataType::Int32 => "TYPE_INT32",
            DataType::Int64 => "TYPE_INT64",
            DataType::Fp16 => "TYPE_FP16",
            DataType::Fp32 => "TYPE_FP32",
            DataType::Fp64 => "TYPE_FP64",
            DataType::Bytes => "TYPE_STRING",
            DataType::Bf16 => "TYPE_BF16",
        }
    }

    /// Returns the type of this name in the KServe v2 protocol; `None` when there is none.
    pub fn from_protocol_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.protocol_name() == name)
    }

    /// Returns the bytes of an element; `None` for the variable-sized `Bytes`.
    pub fn byte_size(self) -> Option<usize> {
        match self {
            DataType::Bool | DataType::Uint8 | DataType::Int8 => Some(1),
            DataType::Uint16 | DataType::Int16 | DataType::Fp16 | DataType::Bf16 => Some(2),
            DataType::Uint32 | DataType::Int32 | DataType::Fp32 => Some(4),
            DataType::Uint64 | DataType::Int64 | DataType::Fp64 => Some(8),
            DataType::Bytes => None,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol_name())
    }
}
