//! The declarations of the C interface: handles, numbers and functions that callers pass.
//!
//! All enumerations are plain integers here, because a library may pass any number. The numbers did not change since the
//! versions named.

use std::ffi::{c_char, c_void};

/// The version of `TRITONSERVER_*` that is offered: major, minor.
pub const SERVER_VERSION: [u32; 2] = [1, 34];
/// The version of `TRITONBACKEND_*` that is offered: major, minor.
pub const BACKEND_VERSION: [u32; 2] = [1, 19];
/// The version of `TRITONCACHE_*` that is offered: major, minor.
pub const CACHE_VERSION: [u32; 2] = [0, 1];
/// The version of `TRITONREPOAGENT_*` that is offered: major, minor.
pub const AGENT_VERSION: [u32; 2] = [0, 1];

/// Objects that the other side knows by their handles only.
mod handles {
    #![expect(missing_docs, reason = "their names are those of the interface")]

    galatea_native_library::objects! {
        pub Error Message Parameter BufferAttributes ResponseAllocator Metrics MetricFamily Metric MetricArgs
        Server ServerOptions InferenceRequest InferenceResponse InferenceTrace
        Backend BackendAttribute Model ModelInstance Request Input Output Response ResponseFactory State MemoryManager
        ResponseStatistics Batcher
        Cache CacheEntry CacheAllocator Agent AgentModel
    }
}

pub use handles::*;

/// Numbers of element types (`TRITONSERVER_DataType`).
pub mod data_type {
    /// No type.
    pub const INVALID: u32 = 0;
    /// `BOOL`; the others follow in the order of [`ALL`].
    pub const BOOL: u32 = 1;
    /// `BYTES`, of elements with a length each.
    pub const BYTES: u32 = 13;
    /// `BF16`, the last one (since `TRITONSERVER` 1.12).
    pub const BF16: u32 = 14;

    use galatea_types::DataType;

    /// The types in the order of their numbers, which begin at 1.
    pub const ALL: [DataType; 14] = [
        DataType::Bool,
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Fp16,
        DataType::Fp32,
        DataType::Fp64,
        DataType::Bytes,
        DataType::Bf16,
    ];

    /// Returns the number of a type.
    pub fn number(data_type: DataType) -> u32 {
        let place = ALL.iter().zip(1..).find(|(known, _)| **known == data_type);
        place.map_or(INVALID, |(_, number)| number)
    }

    /// Returns the type of a number; `None` for [`INVALID`] and unknown ones.
    pub fn of_number(number: u32) -> Option<DataType> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        ALL.get(index).copied()
    }
}

/// Numbers of kinds of memory (`TRITONSERVER_MemoryType`).
pub mod memory {
    /// Memory of the host.
    pub const CPU: u32 = 0;
    /// Memory of the host that a GPU can read directly.
    pub const CPU_PINNED: u32 = 1;
    /// Memory of a GPU.
    pub const GPU: u32 = 2;
}

/// Numbers of kinds of parameters (`TRITONSERVER_ParameterType`).
pub mod parameter {
    /// Text that ends with a zero byte.
    pub const STRING: u32 = 0;
    /// `int64_t`.
    pub const INT: u32 = 1;
    /// `bool`.
    pub const BOOL: u32 = 2;
    /// Bytes with a length.
    pub const BYTES: u32 = 3;
    /// `double` (since `TRITONSERVER` 1.32).
    pub const DOUBLE: u32 = 4;
}

/// Numbers of kinds of instances (`TRITONSERVER_InstanceGroupKind`).
pub mod instance_kind {
    /// The server chooses.
    pub const AUTO: u32 = 0;
    /// The CPU.
    pub const CPU: u32 = 1;
    /// A GPU.
    pub const GPU: u32 = 2;
    /// The model chooses its devices.
    pub const MODEL: u32 = 3;
}

/// Numbers of kinds of metrics (`TRITONSERVER_MetricKind`).
pub mod metric_kind {
    /// A metric that only grows.
    pub const COUNTER: u32 = 0;
    /// A metric that goes up and down.
    pub const GAUGE: u32 = 1;
    /// A metric that counts observations in buckets.
    pub const HISTOGRAM: u32 = 2;
}

/// Levels of the log (`TRITONSERVER_LogLevel`).
pub mod log_level {
    /// A notice.
    pub const INFO: u32 = 0;
    /// A warning.
    pub const WARN: u32 = 1;
    /// An error.
    pub const ERROR: u32 = 2;
    /// Details for the search of faults.
    pub const VERBOSE: u32 = 3;
}

/// Flags of requests, of their release, and of responses.
pub mod flag {
    /// The request is the first of its sequence.
    pub const SEQUENCE_START: u32 = 1;
    /// The request is the last of its sequence.
    pub const SEQUENCE_END: u32 = 2;
    /// The request is released for good.
    pub const RELEASE_ALL: u32 = 1;
    /// The request is to be executed again (since `TRITONSERVER` 1.28).
    pub const RELEASE_RESCHEDULE: u32 = 2;
    /// The response is the last of its request.
    pub const RESPONSE_FINAL: u32 = 1;
    /// A model gives one response for each request.
    pub const ONE_TO_ONE: u32 = 1;
    /// A model gives any number of responses for each request.
    pub const DECOUPLED: u32 = 2;
}

/// Allocates the memory of an output: allocator, name of the output, byte size, preferred kind and number of memory, the
/// caller's data; results are the memory, data for its release, and the kind and number of the memory.
pub type AllocateFn = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *const c_char,
    usize,
    u32,
    i64,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
    *mut u32,
    *mut i64,
) -> *mut Error;

/// Releases memory that an [`AllocateFn`] has returned.
pub type ReleaseFn = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *mut c_void,
    *mut c_void,
    usize,
    u32,
    i64,
) -> *mut Error;

/// Tells an allocator that the next calls are for another response.
pub type StartFn = unsafe extern "C" fn(*mut ResponseAllocator, *mut c_void) -> *mut Error;

/// Asks an allocator for the kind of memory that it would return.
pub type QueryFn = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *mut c_void,
    *const c_char,
    *mut usize,
    *mut u32,
    *mut i64,
) -> *mut Error;

/// Asks an allocator for the attributes of memory that it has returned.
pub type AttributesFn = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *const c_char,
    *mut BufferAttributes,
    *mut c_void,
    *mut c_void,
) -> *mut Error;

/// Takes a request back from the server.
pub type RequestReleaseFn = unsafe extern "C" fn(*mut InferenceRequest, u32, *mut c_void);

/// Takes a response to a request.
pub type ResponseCompleteFn = unsafe extern "C" fn(*mut InferenceResponse, u32, *mut c_void);

#[cfg(test)]
mod tests {
    use galatea_types::DataType;

    use super::*;

    #[test]
    fn types_have_the_numbers_of_the_interface() {
        for data_type in DataType::ALL {
            let number = data_type::number(data_type);
            assert_eq!(data_type::of_number(number), Some(data_type));
        }
        assert_eq!(data_type::number(DataType::Bool), data_type::BOOL);
        assert_eq!(data_type::number(DataType::Bytes), data_type::BYTES);
        assert_eq!(data_type::number(DataType::Bf16), data_type::BF16);
        for unknown in [data_type::INVALID, 15, u32::MAX] {
            assert_eq!(data_type::of_number(unknown), None);
        }
    }
}
