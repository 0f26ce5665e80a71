//! The version of the interface, and names of its numbers.

use std::ffi::{CStr, c_char};

use galatea_types::DataType;

use crate::{
    abi::{self, data_type, instance_kind, memory, parameter},
    call, text,
};

const INVALID: &CStr = c"<invalid>";

pub(super) unsafe extern "C" fn server_version(
    major: *mut u32,
    minor: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_ApiVersion", || {
        let [own_major, own_minor] = abi::SERVER_VERSION;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(major, own_major, "the major version")?;
            call::put(minor, own_minor, "the minor version")
        }
    })
}

pub(super) unsafe extern "C" fn data_type_string(number: u32) -> *const c_char {
    let name = match data_type::of_number(number) {
        None => INVALID,
        Some(DataType::Bool) => c"BOOL",
        Some(DataType::Uint8) => c"UINT8",
        Some(DataType::Uint16) => c"UINT16",
        Some(DataType::Uint32) => c"UINT32",
        Some(DataType::Uint64) => c"UINT64",
        Some(DataType::Int8) => c"INT8",
        Some(DataType::Int16) => c"INT16",
        Some(DataType::Int32) => c"INT32",
        Some(DataType::Int64) => c"INT64",
        Some(DataType::Fp16) => c"FP16",
        Some(DataType::Fp32) => c"FP32",
        Some(DataType::Fp64) => c"FP64",
        Some(DataType::Bytes) => c"BYTES",
        Some(DataType::Bf16) => c"BF16",
    };
    name.as_ptr()
}

pub(super) unsafe extern "C" fn string_to_data_type(name: *const c_char) -> u32 {
    call::value("TRITONSERVER_StringToDataType", data_type::INVALID, || {
        // SAFETY: the caller gives a terminated text, or null.
        let name = unsafe { text::read(name, "the name") }?;
        Ok(DataType::from_protocol_name(&name).map_or(data_type::INVALID, data_type::number))
    })
}

/// Returns 0 for `BYTES` and for unknown types.
pub(super) unsafe extern "C" fn data_type_byte_size(number: u32) -> u32 {
    let size = data_type::of_number(number).and_then(DataType::byte_size).unwrap_or(0);
    u32::try_from(size).unwrap_or(0)
}

pub(super) unsafe extern "C" fn memory_type_string(number: u32) -> *const c_char {
    let name = match number {
        memory::CPU => c"CPU",
        memory::CPU_PINNED => c"CPU_PINNED",
        memory::GPU => c"GPU",
        _ => INVALID,
    };
    name.as_ptr()
}

pub(super) unsafe extern "C" fn parameter_type_string(number: u32) -> *const c_char {
    let name = match number {
        parameter::STRING => c"STRING",
        parameter::INT => c"INT",
        parameter::BOOL => c"BOOL",
        parameter::BYTES => c"BYTES",
        parameter::DOUBLE => c"DOUBLE",
        _ => INVALID,
    };
    name.as_ptr()
}

pub(super) unsafe extern "C" fn instance_group_kind_string(number: u32) -> *const c_char {
    let name = match number {
        instance_kind::AUTO => c"AUTO",
        instance_kind::CPU => c"CPU",
        instance_kind::GPU => c"GPU",
        instance_kind::MODEL => c"MODEL",
        _ => INVALID,
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_types_agree() {
        for data_type in DataType::ALL {
            let number = data_type::number(data_type);
            // SAFETY: terminated texts.
            unsafe {
                let name = data_type_string(number);
                let read = text::read(name, "the name").expect("a text");
                assert_eq!(read, data_type.protocol_name());
                assert_eq!(string_to_data_type(name), number);
                let size = usize::try_from(data_type_byte_size(number)).expect("small");
                assert_eq!(size, data_type.byte_size().unwrap_or(0));
            }
        }
        // SAFETY: terminated texts, null.
        unsafe {
            assert_eq!(CStr::from_ptr(data_type_string(99)), INVALID);
            assert_eq!(CStr::from_ptr(memory_type_string(2)), c"GPU");
            assert_eq!(CStr::from_ptr(instance_group_kind_string(3)), c"MODEL");
            assert_eq!(CStr::from_ptr(parameter_type_string(9)), INVALID);
            assert_eq!(string_to_data_type(c"FLOAT".as_ptr()), data_type::INVALID);
            assert_eq!(string_to_data_type(std::ptr::null()), data_type::INVALID);
        }
    }
}
