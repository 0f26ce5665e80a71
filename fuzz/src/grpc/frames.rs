//! HTTP/2 as bytes: frames, and headers in their plainest form.

/// What every connection begins with: the preface, and settings that change nothing.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Types of frames.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RESET: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GO_AWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
}

/// Flags of frames with data or headers.
pub mod flag {
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// Appends a frame.
pub fn push(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("short");
    bytes.extend(&length.to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
}

/// A block of headers, none of them remembered by the other side.
pub fn headers<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        push_text(&mut block, name);
        push_text(&mut block, value);
    }
    block
}

/// Without Huffman's code. The length is a number with a prefix of seven bits.
fn push_text(block: &mut Vec<u8>, text: &str) {
    if let Some(rest) = text.len().checked_sub(127) {
        block.push(127);
        let mut rest = rest;
        while rest >= 128 {
            block.push(128 | (rest & 127) as u8);
            rest >>= 7;
        }
        block.push(rest as u8);
    } else {
        block.push(text.len() as u8);
    }
    block.extend(text.bytes());
}
