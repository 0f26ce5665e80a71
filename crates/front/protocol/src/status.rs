//! The status of each error in HTTP and gRPC.

use galatea_types::Code;

/// Returns the HTTP status of an error code.
pub fn http_status(code: Code) -> u16 {
    match code {
        Code::Internal => 500,
        Code::NotFound => 404,
        Code::Unavailable | Code::Exhausted => 503,
        Code::Unsupported => 501,
        Code::Unknown | Code::InvalidArg | Code::AlreadyExists | Code::Cancelled => 400,
    }
}

/// Returns the gRPC status of an error code, by its number in the gRPC specification.
pub fn grpc_code(code: Code) -> i32 {
    match code {
        Code::Cancelled => 1,
        Code::Unknown => 2,
        Code::InvalidArg => 3,
        Code::NotFound => 5,
        Code::AlreadyExists => 6,
        Code::Exhausted => 8,
        Code::Unsupported => 12,
        Code::Internal => 13,
        Code::Unavailable => 14,
    }
}
