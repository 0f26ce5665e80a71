//! Length-prefixed messages within the data of a call.

use bytes::{Buf, Bytes, BytesMut};

use crate::response_error::ResponseError;

/// Length of the compressed flag and the message length.
pub(super) const PREFIX: usize = 5;
/// Largest number of bytes reserved for a message that has not arrived.
const MAX_RESERVE: usize = 16 << 20;

pub(super) fn prefix(is_compressed: bool, length: usize) -> Option<[u8; PREFIX]> {
    let [a, b, c, d] = u32::try_from(length).ok()?.to_be_bytes();
    Some([u8::from(is_compressed), a, b, c, d])
}

/// Cuts the data that arrives into messages. A message within one piece is not copied.
#[derive(Default)]
pub(super) struct MessageReader {
    piece: Bytes,
    partial: BytesMut,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub is_compressed: bool,
    pub bytes: Bytes,
}

impl MessageReader {
    /// Takes the next piece, after `next` has returned `None`.
    pub fn push(&mut self, piece: Bytes) {
        if self.partial.is_empty() {
            self.piece = piece;
        } else {
            self.partial.extend_from_slice(&piece);
        }
    }

    /// Refuses a message whose announced length is above the limit.
    pub fn check_length(&self, limit: usize) -> Result<(), ResponseError> {
        let front = if self.partial.is_empty() { &self.piece[..] } else { &self.partial[..] };
        match extent(front) {
            Some((_, end)) if end - PREFIX > limit => Err(ResponseError::TooLong { limit }),
            _ => Ok(()),
        }
    }

    /// Returns true if everything pushed has been returned.
    pub fn is_empty(&self) -> bool {
        self.piece.is_empty() && self.partial.is_empty()
    }

    pub fn next(&mut self) -> Option<Message> {
        if !self.partial.is_empty() {
            let (is_compressed, end) = extent(&self.partial)?;
            if self.partial.len() < end {
                self.partial.reserve((end - self.partial.len()).min(MAX_RESERVE));
                return None;
            }
            let bytes = self.partial.split_to(end).freeze().slice(PREFIX..);
            // The following messages are read without another copy.
            self.piece = self.partial.split().freeze();
            return Some(Message { is_compressed, bytes });
        }
        match extent(&self.piece) {
            Some((is_compressed, end)) if self.piece.len() >= end => {
                self.piece.advance(PREFIX);
                Some(Message { is_compressed, bytes: self.piece.split_to(end - PREFIX) })
            }
            _ => {
                let piece = std::mem::take(&mut self.piece);
                self.partial.extend_from_slice(&piece);
                None
            }
        }
    }
}

/// Returns the compressed flag of the message at the front, and its end.
fn extent(bytes: &[u8]) -> Option<(bool, usize)> {
    let [flag, length @ ..] = bytes.first_chunk::<PREFIX>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    Some((*flag != 0, PREFIX + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_at_any_split() {
        let mut data = Vec::new();
        for (flag, text) in [(false, "first"), (true, ""), (false, "the third one")] {
            data.extend(prefix(flag, text.len()).unwrap());
            data.extend(text.as_bytes());
        }
        for size in 1..=data.len() {
            let mut reader = MessageReader::default();
            let mut found = Vec::new();
            for piece in data.chunks(size) {
                reader.push(Bytes::copy_from_slice(piece));
                while let Some(message) = reader.next() {
                    found.push((message.is_compressed, message.bytes));
                }
            }
            assert!(reader.is_empty());
            let expected: [(bool, &[u8]); 3] =
                [(false, b"first"), (true, b""), (false, b"the third one")];
            assert_eq!(found.len(), 3, "{size}");
            assert!(found.iter().zip(expected).all(|(a, b)| a.0 == b.0 && a.1 == b.1), "{size}");
        }
    }

    #[test]
    fn a_message_is_refused_by_its_announced_length() {
        for split in [PREFIX, PREFIX + 2] {
            let data = [&prefix(false, 8).unwrap()[..], b"12"].concat();
            let mut reader = MessageReader::default();
            reader.push(Bytes::copy_from_slice(&data[..split]));
            assert!(reader.check_length(8).is_ok());
            assert!(reader.check_length(7).is_err());
            assert!(reader.next().is_none());
            assert!(reader.check_length(7).is_err(), "also once it has been looked at");
        }
    }
}
