//! Converts between gRPC messages and the types of requests and responses.
//!
//! Tensor bytes are never copied here: `raw_input_contents` stay slices of the message, and an output's buffer becomes
//! `raw_output_contents` as it is. Only typed contents are converted.

mod contents;
mod decode;
mod decode_error;
mod fault;
mod fields;
mod input;
mod message;
mod parameters;
mod pieces;
mod region;
mod response;

#[cfg(test)]
mod tests;

pub use decode::{decode, decode_unread};
pub use message::{RequestMessage, count_fields, decoding_work};
pub use parameters::parameter_message;
pub use pieces::Pieces;
#[cfg(test)]
pub(crate) use response::encode;
pub use response::{Envelope, FINAL_RESPONSE, encode_response, encode_stream_message};
