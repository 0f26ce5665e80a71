use galatea_protocol::grpc_code;
use galatea_types::Error;
use tonic::{Code, Status};

/// The status of an error (G-50): its class and its text.
pub(crate) fn status_of(error: &Error) -> Status {
    Status::new(Code::from_i32(grpc_code(error.code())), error.message())
}
