//! Reads numbers, texts and slices with checks.

/// A violation of the protocol by a worker, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct ProtocolError(pub &'static str);

/// Takes numbers and slices from the front of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Makes a reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads the next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], ProtocolError> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or(ProtocolError("it is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Returns all bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads the next `length` bytes as text.
    pub fn text(&mut self, length: usize) -> Result<&'a str, ProtocolError> {
        std::str::from_utf8(self.bytes(length)?).map_err(|_| ProtocolError("a text is not UTF-8"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ProtocolError("it is cut short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, ProtocolError> {
        self.array().map(|[byte]| byte)
    }

    /// Reads two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads eight bytes, little-endian.
    pub fn i64(&mut self) -> Result<i64, ProtocolError> {
        self.array().map(i64::from_le_bytes)
    }
}

/// Converts a length that came as a wide number.
pub(super) fn size(length: impl TryInto<usize>) -> Result<usize, ProtocolError> {
    length.try_into().map_err(|_| ProtocolError("a length is too great"))
}
