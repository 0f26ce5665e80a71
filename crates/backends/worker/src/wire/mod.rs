//! The messages between server and worker, as bytes: see `PROTOCOL.md`.
//!
//! Nothing here uses a socket or shared memory. Messages of a worker are not trusted: every read is checked, and a violation
//! of the protocol is a [`ProtocolError`].

mod failure;
mod packet;
mod protocol;
mod read;
mod request;
mod response;
mod tensor;
#[cfg(test)]
mod tests;
mod write;

pub use failure::Failure;
pub use packet::{Header, Packet, ParsedPacket, Payload};
pub use protocol::{HEADER_LENGTH, INLINE_LIMIT, PACKET_LIMIT, flag, kind};
pub use read::{ProtocolError, Reader};
pub use request::RequestHead;
pub use response::{Body, ResponseHead, code_from_number, code_number};
pub use tensor::{TensorHead, TensorPlace, holds_strings};
pub use write::{
    Blocks, MessagePosition, OutgoingMessage, SentRequest, put_failure, put_request, put_response,
};

/// Reads `packet` as every kind of message a worker may send: for tests and fuzzing.
#[doc(hidden)]
pub fn read_anything(packet: &[u8]) {
    let Ok(ParsedPacket::Whole(packet)) = ParsedPacket::read(packet) else { return };
    packet.released().for_each(drop);
    let _ = packet.text();
    let _ = Failure::read(packet.payload);
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
    if let TensorPlace::Inline(start) = head.place {
        let end = start.checked_add(head.byte_length);
        let data = end.and_then(|end| payload.data.get(start..end)).unwrap_or_default();
        let _ = tensor::holds_strings(data, head.shape.element_count().unwrap_or(0));
    }
}
