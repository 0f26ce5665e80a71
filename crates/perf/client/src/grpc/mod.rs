//! The protocol over gRPC, directly on HTTP/2.

mod admin;
mod compression;
mod fields;
mod message;
mod metadata;
mod outputs;
mod pool;
mod request;
mod status;
mod stream;
mod unary;

pub(crate) use admin::GrpcAdmin;
#[doc(hidden)]
pub use outputs::decode_infer_message;
pub(crate) use pool::{GrpcCaller, GrpcPool};
pub(crate) use request::GrpcInfer;
pub use stream::{StreamReceiver, StreamSender};
