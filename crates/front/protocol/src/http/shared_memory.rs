//! The bodies of requests that register shared memory regions, and of the answers about their status.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use super::{
    decode_error::{DecodeError, Result},
    documents::to_json,
    json::{JsonCursor, Kind, for_each_member},
};

/// The size of CUDA's `cudaIpcMemHandle_t` in bytes.
const CUDA_HANDLE: usize = 64;

/// A region of system shared memory as a client describes it. Its name is in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemRegion {
    /// The name of the memory in the system; `None`: the request brought the memory.
    pub key: Option<String>,
    /// The first byte of the memory in the region.
    pub offset: u64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// A region of CUDA shared memory as a client describes it. Its name is in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaRegion {
    /// The `cudaIpcMemHandle_t` of the allocation.
    pub handle: [u8; CUDA_HANDLE],
    /// The number of the GPU.
    pub device_id: u64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// Decodes the request to register a region of system shared memory. Only one that `brings_memory` may be without a key.
pub fn decode_system_region(
    body: &[u8],
    brings_memory: bool,
) -> galatea_types::Result<SystemRegion> {
    Ok(system_region(body, brings_memory)?)
}

fn system_region(body: &[u8], brings_memory: bool) -> Result<SystemRegion> {
    let [key, offset, byte_size] = members(body, ["key", "offset", "byte_size"])?;
    let key = match key {
        Some(mut key) => {
            let key = String::from_utf8(key.expect_string()?.into_owned());
            Some(key.map_err(|_| DecodeError::NotText("key"))?)
        }
        None if brings_memory => None,
        None => return Err(DecodeError::NoRegionField("key")),
    };
    let offset = offset.map_or(Ok(0), |mut offset| offset.expect_u64())?;
    let byte_size = byte_size.ok_or(DecodeError::NoRegionField("byte_size"))?.expect_u64()?;
    Ok(SystemRegion { key, offset, byte_size })
}

/// Decodes the request to register a region of CUDA shared memory.
pub fn decode_cuda_region(body: &[u8]) -> galatea_types::Result<CudaRegion> {
    Ok(cuda_region(body)?)
}

fn cuda_region(body: &[u8]) -> Result<CudaRegion> {
    let [handle, byte_size, device] = members(body, ["raw_handle", "byte_size", "device_id"])?;
    let handle = handle.ok_or(DecodeError::NoRegionField("raw_handle"))?;
    let [base64] = members_at(handle, ["b64"])?;
    let base64 = base64.ok_or(DecodeError::NoMember("b64"))?.expect_string()?;
    let byte_size = byte_size.ok_or(DecodeError::NoMember("byte_size"))?.expect_u64()?;
    let device_id = device.ok_or(DecodeError::NoMember("device_id"))?.expect_u64()?;
    let handle = STANDARD.decode(base64).ok().and_then(|handle| handle.try_into().ok());
    Ok(CudaRegion { handle: handle.ok_or(DecodeError::CudaHandle)?, device_id, byte_size })
}

/// Returns cursors at the values of these members of the body; `None` for one that is missing. Of two with the same name the
/// first counts. A body that is no object has no members.
fn members<'a, const N: usize>(
    body: &'a [u8],
    names: [&str; N],
) -> Result<[Option<JsonCursor<'a>>; N]> {
    JsonCursor::check_document(body)?;
    members_at(JsonCursor::new(body), names)
}

fn members_at<'a, const N: usize>(
    mut object: JsonCursor<'a>,
    names: [&str; N],
) -> Result<[Option<JsonCursor<'a>>; N]> {
    let mut found = [const { None }; N];
    if object.kind() != Kind::Object {
        return Ok(found);
    }
    for_each_member(&mut object, |key, cursor| {
        let value = names.iter().zip(&mut found).find(|(name, _)| name.as_bytes() == key);
        if let Some((_, value)) = value {
            value.get_or_insert_with(|| cursor.clone());
        }
        cursor.skip_value()
    })?;
    Ok(found)
}

/// The status of a region of system shared memory.
#[derive(Clone, Debug, Serialize)]
pub struct RegionStatus {
    /// The name used in requests.
    pub name: String,
    /// The name of the memory in the system.
    pub key: String,
    /// The first byte of the memory in the region.
    pub offset: u64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// The status of a region of CUDA shared memory.
#[derive(Clone, Debug, Serialize)]
pub struct CudaRegionStatus {
    /// The name used in requests.
    pub name: String,
    /// The number of the GPU.
    pub device_id: i64,
    /// Number of bytes.
    pub byte_size: u64,
}

/// Returns the answer about these regions, of either kind.
pub fn region_statuses<S: Serialize>(regions: &[S]) -> Vec<u8> {
    to_json(regions)
}

#[cfg(test)]
mod tests {
    use galatea_types::Code;

    use super::*;

    #[track_caller]
    fn assert_refused<T: std::fmt::Debug>(
        decode: fn(&[u8]) -> galatea_types::Result<T>,
        body: &str,
        code: Code,
        text: &str,
    ) {
        let error = decode(body.as_bytes()).expect_err(body);
        assert_eq!((error.code(), error.message()), (code, text), "{body}");
    }

    fn with_key(body: &[u8]) -> galatea_types::Result<SystemRegion> {
        decode_system_region(body, false)
    }

    #[test]
    fn a_region_has_a_key_a_size_and_perhaps_an_offset() {
        let region = |key: &str, offset, byte_size| SystemRegion {
            key: Some(key.into()),
            offset,
            byte_size,
        };
        for (body, expected) in [
            (r#"{"key":"/k","byte_size":64}"#, region("/k", 0, 64)),
            (r#"{"byte_size":64,"x":[{}],"offset":4096,"key":"k"}"#, region("k", 4096, 64)),
            (r#"{"key":"a","key":"b","byte_size":0}"#, region("a", 0, 0)),
            (r#"{"key":"\u00e9","byte_size":9223372036854775808}"#, region("é", 0, 1 << 63)),
        ] {
            for brings_memory in [false, true] {
                let region = decode_system_region(body.as_bytes(), brings_memory);
                assert_eq!(region.expect(body), expected);
            }
        }
    }

    #[test]
    fn a_region_that_brings_its_memory_needs_no_key() {
        let region = decode_system_region(br#"{"byte_size":64,"offset":8}"#, true);
        let expected = SystemRegion { key: None, offset: 8, byte_size: 64 };
        assert_eq!(region.expect("described"), expected);
        let no_size = "Shared memory register request has no 'byte_size' field";
        assert_refused(|body| decode_system_region(body, true), "{}", Code::InvalidArg, no_size);
    }

    #[test]
    fn regions_of_the_system_that_are_not_described() {
        let no_number = "attempt to access JSON non-unsigned-integer as unsigned-integer";
        for number in ["\"64\"", "-64", "64.0", "true", "null", "18446744073709551616"] {
            for body in [
                format!(r#"{{"key":"/k","byte_size":{number}}}"#),
                format!(r#"{{"key":"/k","byte_size":64,"offset":{number}}}"#),
            ] {
                assert_refused(with_key, &body, Code::Internal, no_number);
            }
        }
        let no_key = "Shared memory register request has no 'key' field";
        let no_size = "Shared memory register request has no 'byte_size' field";
        let parse = |fault| format!("failed to parse the request JSON buffer: {fault}");
        for (body, code, text) in [
            (
                r#"{"key":4,"byte_size":64}"#,
                Code::Internal,
                "attempt to access JSON non-string as string",
            ),
            ("{}", Code::InvalidArg, no_key),
            ("[]", Code::InvalidArg, no_key),
            (r#"{"byte_size":64}"#, Code::InvalidArg, no_key),
            (r#"{"key":"/k"}"#, Code::InvalidArg, no_size),
            ("{\"key\":\"\u{7f}\"}", Code::InvalidArg, no_size),
            ("", Code::Internal, &parse("The document is empty. at 0")),
            ("{", Code::Internal, &parse("Missing a name for object member. at 1")),
        ] {
            assert_refused(with_key, body, code, text);
        }
        let error = with_key(b"{\"key\":\"\xff\",\"byte_size\":1}").expect_err("no text");
        assert_eq!(error.message(), "Unable to parse 'key': it is not UTF-8");
    }

    #[test]
    fn regions_of_devices_have_a_handle_of_64_bytes() {
        let body = |handle: &[u8]| {
            let handle = STANDARD.encode(handle);
            format!(r#"{{"raw_handle":{{"b64":"{handle}"}},"device_id":1,"byte_size":64}}"#)
        };
        let region = CudaRegion { handle: [7; 64], device_id: 1, byte_size: 64 };
        let given = body(&[7; 64]);
        assert_eq!(decode_cuda_region(given.as_bytes()).expect("a handle"), region);
        let no_handle = "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t";
        for handle in [&[7; 63][..], &[7; 65], &[]] {
            assert_refused(decode_cuda_region, &body(handle), Code::InvalidArg, no_handle);
        }
        let missing = |name| format!("attempt to access non-existing object member '{name}'");
        let text = body(&[7; 64]);
        for (body, code, text) in [
            ("{}", Code::InvalidArg, "Shared memory register request has no 'raw_handle' field"),
            (r#"{"raw_handle":{}}"#, Code::Internal, &missing("b64")),
            (&text.replace("byte_size", "x"), Code::Internal, &missing("byte_size")),
            (&text.replace("device_id", "x"), Code::Internal, &missing("device_id")),
            (&text.replace("Bw", "*w"), Code::InvalidArg, no_handle),
        ] {
            assert_refused(decode_cuda_region, body, code, text);
        }
        let statuses = [CudaRegionStatus { name: "r".into(), device_id: 1, byte_size: 64 }];
        let expected = br#"[{"name":"r","device_id":1,"byte_size":64}]"#;
        assert_eq!(region_statuses(&statuses), expected);
    }
}
