//! The messages between server and worker, as bytes: see `PROTOCOL.md`.
//!
//! Nothing here knows a socket or shared memory. What comes from a worker is foreign: every read is
//! checked, and whatever does not fit is [`Malformed`].

mod packet;
mod read;
mod request;
mod response;
mod tensor;
#[cfg(test)]
mod tests;
mod write;

pub use packet::{Header, Packet, Parsed, Payload};
pub use read::{Malformed, Reader};
pub use request::RequestHead;
pub use response::{Body, ResponseHead, number_of};
pub use tensor::{Place, TensorHead, holds_strings};
pub use write::{Blocks, Outgoing, SentRequest, put_request, put_response};

/// A packet is never longer; what does not fit travels in a block.
pub const PACKET_LIMIT: usize = 128 << 10;
/// Inline tensors of one message together stay below this.
pub const INLINE_LIMIT: usize = 32 << 10;
pub const HEADER_LENGTH: usize = 24;

pub mod flag {
    pub const FINAL: u8 = 1;
    pub const ERROR: u8 = 2;
    pub const EMPTY: u8 = 4;
    pub const DECOUPLED: u8 = 8;
}

pub mod kind {
    pub const HELLO: u8 = 1;
    pub const INIT: u8 = 2;
    pub const READY: u8 = 3;
    pub const COMPLETE: u8 = 4;
    pub const COMPLETED: u8 = 5;
    pub const EXECUTE: u8 = 6;
    pub const EXECUTED: u8 = 7;
    pub const FINALIZE: u8 = 8;
    pub const FINALIZED: u8 = 9;

    pub const RESPONSE: u8 = 20;
    pub const INFER: u8 = 21;
    pub const CANCEL: u8 = 22;
    pub const LOG: u8 = 23;
    pub const ASK: u8 = 24;
    pub const TELL: u8 = 25;
    pub const RELEASE_TO_SERVER: u8 = 26;
    pub const READINESS: u8 = 27;
    pub const TRIMMED: u8 = 28;

    pub const INFERRED: u8 = 40;
    pub const REPLY: u8 = 41;
    pub const RELEASE_TO_WORKER: u8 = 42;
    pub const ASK_READY: u8 = 43;
    pub const TRIM: u8 = 44;
    pub const LOG_LEVEL: u8 = 45;
}

/// Reads `packet` as every kind of message a worker may send: for tests and fuzzing.
#[doc(hidden)]
pub fn read_anything(packet: &[u8]) {
    let Ok(Parsed::Whole(packet)) = Parsed::read(packet) else { return };
    packet.released().for_each(drop);
    let _ = packet.text();
    let mut requests = Reader::new(packet.payload.meta);
    let mut responses = requests;
    while let Ok(request) = RequestHead::read(&mut requests) {
        request.inputs.iter().for_each(|t| read_tensor(t, packet.payload));
    }
    while let Ok(response) = ResponseHead::read(&mut responses) {
        response.outputs.iter().for_each(|t| read_tensor(t, packet.payload));
    }
}

fn read_tensor(head: &TensorHead<'_>, payload: Payload<'_>) {
    if let Place::Inline(start) = head.place {
        let end = start.checked_add(head.byte_length);
        let data = end.and_then(|end| payload.data.get(start..end)).unwrap_or_default();
        let _ = tensor::holds_strings(data, head.shape.element_count().unwrap_or(0));
    }
}
