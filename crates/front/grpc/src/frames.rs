//! The heads of HTTP/2 frames in the bytes of a connection.

/// The length of the preface before the first frame.
const PREFACE: usize = 24;
const HEAD: usize = 9;
const ACK: u8 = 1;
const STREAM_MASK: u32 = u32::MAX >> 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    Reset,
    Settings,
    Ping,
    /// The answer to a ping.
    Pong,
    /// Priorities, windows, and frames that HTTP/2 does not know.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: Kind,
    /// The length of the payload after the head.
    pub length: usize,
}

/// Finds the frames in the bytes read, however they are split. It checks nothing; HTTP/2 does.
#[derive(Debug)]
pub(crate) struct FrameReader {
    /// Bytes before the next head.
    skip: usize,
    current: Option<Frame>,
    head: [u8; HEAD],
    filled: usize,
    last_stream: u32,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self { skip: PREFACE, current: None, head: [0; HEAD], filled: 0, last_stream: 0 }
    }
}

impl FrameReader {
    /// Reads bytes and returns how many of them are data of calls.
    pub fn read(&mut self, mut bytes: &[u8], mut see: impl FnMut(Frame)) -> usize {
        let mut data = 0;
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                data += if self.is_in_data() { skipped } else { 0 };
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let wanted = (HEAD - self.filled).min(bytes.len());
            let (part, rest) = bytes.split_at(wanted);
            if let Some(place) = self.head.get_mut(self.filled..self.filled + wanted) {
                place.copy_from_slice(part);
            }
            self.filled += wanted;
            bytes = rest;
            if self.filled == HEAD {
                let frame = self.frame();
                self.filled = 0;
                self.skip = frame.length;
                self.current = Some(frame);
                see(frame);
            }
        }
        data
    }

    /// Returns how many of the next `most` bytes are of the same frame's head or payload.
    pub fn step(&self, most: usize) -> usize {
        if self.skip > 0 { self.skip.min(most) } else { (HEAD - self.filled).min(most) }
    }

    /// Returns `true` if the next byte is of the payload of headers.
    pub fn is_in_headers(&self) -> bool {
        self.skip > 0 && self.current.is_some_and(|frame| frame.kind == Kind::Headers)
    }

    fn is_in_data(&self) -> bool {
        self.current.is_some_and(|frame| frame.kind == Kind::Data)
    }

    /// Returns the received bytes of an incomplete data frame. No call can have them yet.
    pub fn incomplete(&self) -> usize {
        let length = self.current.filter(|_| self.skip > 0 && self.is_in_data());
        length.map_or(0, |frame| frame.length - self.skip)
    }

    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    fn frame(&mut self) -> Frame {
        let [a, b, c, kind, flags, stream @ ..] = self.head;
        let kind = match kind {
            0 => Kind::Data,
            1 => Kind::Headers,
            3 => Kind::Reset,
            4 => Kind::Settings,
            6 if flags & ACK != 0 => Kind::Pong,
            6 => Kind::Ping,
            _ => Kind::Other,
        };
        if kind == Kind::Headers {
            self.last_stream = self.last_stream.max(u32::from_be_bytes(stream) & STREAM_MASK);
        }
        Frame { kind, length: u32::from_be_bytes([0, a, b, c]) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_at_any_split() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let kinds =
            [Kind::Settings, Kind::Headers, Kind::Data, Kind::Ping, Kind::Reset, Kind::Other];
        let mut expected = Vec::new();
        for (kind, (number, length)) in
            kinds.into_iter().zip([(4, 0), (1, 300), (0, 70_000), (6, 8), (3, 4), (2, 5)])
        {
            let head = (length as u32).to_be_bytes();
            bytes.extend([head[1], head[2], head[3], number, 0, 0, 0, 0, 1]);
            bytes.extend(vec![7; length]);
            expected.push(Frame { kind, length });
        }
        for size in [1, 2, 8, 9, 10, 1000, bytes.len()] {
            let (mut reader, mut found) = (FrameReader::default(), Vec::new());
            let data = bytes.chunks(size).map(|chunk| reader.read(chunk, |f| found.push(f)));
            assert_eq!(data.sum::<usize>(), 70_000);
            assert_eq!((found, reader.incomplete()), (expected.clone(), 0), "{size}");
        }
    }
}
