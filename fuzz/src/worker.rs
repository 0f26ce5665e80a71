//! What Python workers send.

/// Any bytes as a packet: a message or an error, never a panic.
pub fn message(packet: &[u8]) {
    galatea_worker::wire::read_anything(packet);
}
