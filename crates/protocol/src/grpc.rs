//! The gRPC messages to and from the vocabulary (G-30 to G-36, G-51 to G-53).
//!
//! Tensor bytes are never copied here: what comes as `raw_input_contents` stays a slice of the message, and
//! an output's buffer goes into `raw_output_contents` as it is. Only typed contents are written anew.

mod contents;
mod decode;
mod encode;
mod parameters;
mod shared_memory;
mod wire;

#[cfg(test)]
mod tests;

pub use decode::{DecodedRequest, decode};
pub use encode::{check_message_size, encode};
pub use parameters::parameter_message;
pub use wire::{Pieces, decode_message, encode_message};
