//! The authority of calls over a Unix socket.

use crate::frames::FrameReader;

/// A header whose name is written out: its length and itself.
const NAME: &[u8] = b"\x0a:authority";
const IS_HUFFMAN: u8 = 1 << 7;
/// The first byte of a longer length.
const LONG: u8 = IS_HUFFMAN - 1;
/// The most bits of a length.
const MOST_BITS: u32 = 28;

/// Makes the authority valid that gRPC's C library, and with it Python's, takes from the path of a Unix socket:
/// `tmp%2Fgalatea`. HTTP/2 refuses the percent signs, so they become dashes. Nothing uses the authority, and no length
/// changes, neither of a frame nor of a table of headers.
#[derive(Debug, Default)]
pub(crate) struct SocketAuthority {
    frames: FrameReader,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// So many bytes of the name have come.
    Name(usize),
    /// The length of the value comes next.
    Length,
    /// The rest of a long length comes, from this bit on.
    LongLength { length: usize, bits: u32 },
    /// So many bytes of the value are left.
    Value(usize),
}

impl Default for Place {
    fn default() -> Self {
        Self::Name(0)
    }
}

impl SocketAuthority {
    /// Changes the next bytes from the client.
    pub fn repair(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at_mut(self.frames.step(bytes.len()));
            if self.frames.is_in_headers() {
                part.iter_mut().for_each(|byte| self.place = self.place.after(byte));
            }
            self.frames.read(part, |_| {});
            bytes = rest;
        }
    }
}

impl Place {
    fn after(self, byte: &mut u8) -> Self {
        match self {
            Self::Name(count) if NAME.get(count) == Some(byte) => {
                if count + 1 == NAME.len() {
                    Self::Length
                } else {
                    Self::Name(count + 1)
                }
            }
            Self::Name(_) => Self::Name(usize::from(NAME.first() == Some(byte))),
            Self::Length if *byte == LONG => Self::LongLength { length: LONG.into(), bits: 0 },
            Self::Length if *byte & IS_HUFFMAN == 0 => Self::of_value((*byte).into()),
            Self::Length => Self::default(),
            Self::LongLength { length, bits } => {
                let length = length + (usize::from(*byte & LONG) << bits);
                match (*byte & IS_HUFFMAN != 0, bits + 7) {
                    (false, _) => Self::of_value(length),
                    (true, MOST_BITS..) => Self::default(),
                    (true, bits) => Self::LongLength { length, bits },
                }
            }
            Self::Value(left) => {
                if *byte == b'%' {
                    *byte = b'-';
                }
                Self::of_value(left - 1)
            }
        }
    }

    fn of_value(left: usize) -> Self {
        if left == 0 { Self::default() } else { Self::Value(left) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let [.., a, b, c] = payload.len().to_be_bytes();
        [&[a, b, c, kind, 4, 0, 0, 0, 1], payload].concat()
    }

    fn header(length: &[u8], value: &[u8]) -> Vec<u8> {
        [b"@", NAME, length, value].concat()
    }

    #[test]
    fn percent_signs_of_the_authority_become_dashes_and_no_others() {
        let long = "a%2F".repeat(70);
        let (mut sent, mut expected) = (PREFACE.to_vec(), PREFACE.to_vec());
        for (kind, given, taken) in [
            (HEADERS, header(b"\x09", b"tmp%2Fx%y%"), header(b"\x09", b"tmp-2Fx-y%")),
            (DATA, header(b"\x03", b"a%b"), header(b"\x03", b"a%b")),
            (HEADERS, header(b"\x00", b"%"), header(b"\x00", b"%")),
            (HEADERS, header(b"\x83", b"a%b"), header(b"\x83", b"a%b")),
            (HEADERS, b"@\x0a:authoritx\x03a%b".to_vec(), b"@\x0a:authoritx\x03a%b".to_vec()),
            (
                HEADERS,
                header(b"\x7f\x99\x01", (long.clone() + "%").as_bytes()),
                header(b"\x7f\x99\x01", (long.replace('%', "-") + "%").as_bytes()),
            ),
            (
                HEADERS,
                header(b"\x7f\xff\xff\xff\xff\xff", b"%"),
                header(b"\x7f\xff\xff\xff\xff\xff", b"%"),
            ),
        ] {
            sent.extend(frame(kind, &given));
            expected.extend(frame(kind, &taken));
        }
        for size in [1, 2, 7, 100, sent.len()] {
            let (mut authority, mut bytes) = (SocketAuthority::default(), sent.clone());
            bytes.chunks_mut(size).for_each(|part| authority.repair(part));
            assert!(bytes == expected, "{size}");
        }
    }
}
