//! The header of a packet, and a parsed packet.

use crate::wire::{
    protocol::HEADER_LENGTH,
    read::{ProtocolError, Reader, size},
};

/// The fixed beginning of every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`](crate::wire::kind).
    pub kind: u8,
    /// Bits of [`flag`](crate::wire::flag).
    pub flags: u8,
    /// Number of offsets of released blocks at the start of meta.
    pub released: u16,
    /// Number of requests or responses, by kind.
    pub count: u32,
    /// Meaning by kind.
    pub id: u64,
    /// Bytes of meta, the released offsets included.
    pub meta_length: u32,
    /// True if meta and data lie in a block of the sender's arena.
    pub is_spilled: bool,
}

impl Header {
    /// Reads the fixed part of a packet.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            kind: reader.u8()?,
            flags: reader.u8()?,
            released: reader.u16()?,
            count: reader.u32()?,
            id: reader.u64()?,
            meta_length: reader.u32()?,
            is_spilled: match reader.u32()? {
                0 => false,
                1 => true,
                _ => return Err(ProtocolError("its spill field is neither 0 nor 1")),
            },
        })
    }

    /// Returns the bytes that are sent.
    pub fn bytes(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        let fields = [self.kind, self.flags].into_iter();
        let fields = fields
            .chain(self.released.to_le_bytes())
            .chain(self.count.to_le_bytes())
            .chain(self.id.to_le_bytes())
            .chain(self.meta_length.to_le_bytes())
            .chain(u32::from(self.is_spilled).to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        bytes
    }

    /// Returns true if all bits of `flag` are set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }
}

/// A packet parsed from the bytes of a socket.
#[derive(Clone, Copy, Debug)]
pub enum ParsedPacket<'a> {
    /// The packet holds all of the message.
    Whole(Packet<'a>),
    /// The content lies in the sender's arena.
    Spilled {
        /// Header of the message.
        header: Header,
        /// Offset of the block, in bytes.
        offset: u64,
        /// Length of the block, in bytes.
        length: u64,
    },
}

impl<'a> ParsedPacket<'a> {
    /// Parses a packet.
    pub fn read(packet: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(packet);
        let header = Header::read(&mut reader)?;
        if header.is_spilled {
            return Ok(Self::Spilled { header, offset: reader.u64()?, length: reader.u64()? });
        }
        let mut content = Reader::new(packet.get(HEADER_LENGTH..).unwrap_or_default());
        let meta = content.bytes(size(header.meta_length)?)?;
        Packet::read(header, meta, content.rest()).map(Self::Whole)
    }
}

/// A message: its header, and the data that travels with it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its fixed part.
    pub header: Header,
    released: &'a [u8],
    /// Meta without the released offsets, and data.
    pub payload: Payload<'a>,
}

/// The part of a message whose meaning depends on its kind.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The content by kind, without inline data.
    pub meta: &'a [u8],
    /// Tensors that travel inline.
    pub data: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Splits the released offsets off `meta` and checks their number against `header`.
    pub fn read(header: Header, meta: &'a [u8], data: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut meta = Reader::new(meta);
        let released = meta.bytes(usize::from(header.released) * 8)?;
        Ok(Self { header, released, payload: Payload { meta: meta.rest(), data } })
    }

    /// Returns the blocks of the receiver's arena that the sender gives back.
    pub fn released(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.released.as_chunks().0.iter().map(|&offset| u64::from_le_bytes(offset))
    }

    /// Reads meta as text.
    pub fn text(&self) -> Result<&'a str, ProtocolError> {
        std::str::from_utf8(self.payload.meta).map_err(|_| ProtocolError("a text is not UTF-8"))
    }
}
