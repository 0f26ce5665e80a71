//! Between messages and packets: what is too large for a packet goes through shared memory.

use std::{cell::OnceCell, io::IoSlice, sync::Arc};

use bytes::Bytes;
use galatea_types::{Buffer, Result, Tensor};

use crate::{
    link::Link,
    memory::OutboxBlock,
    wire::{
        HEADER_LENGTH, Header, Malformed, Outgoing, PACKET_LIMIT, Packet, Parsed, Place,
        TensorHead, holds_strings,
    },
};

/// A message as a packet: the parts that are not the message's own.
pub(crate) struct Sealed {
    /// The header, and the released blocks or where the spilled content is.
    head: Vec<u8>,
    padding: usize,
    is_spilled: bool,
}

/// Inline data starts on this.
const DATA_ALIGNMENT: usize = 16;
const ZEROS: [u8; DATA_ALIGNMENT] = [0; DATA_ALIGNMENT];

impl Sealed {
    pub fn parts<'a>(&'a self, message: &'a Outgoing) -> [IoSlice<'a>; 4] {
        let padding = ZEROS.get(..self.padding).unwrap_or_default();
        let follows = |part: &'a [u8]| IoSlice::new(if self.is_spilled { &[] } else { part });
        [IoSlice::new(&self.head), follows(&message.meta), follows(padding), follows(&message.data)]
    }

    pub fn bytes(&self, message: &Outgoing) -> Vec<u8> {
        self.parts(message).iter().flat_map(|part| part.iter().copied()).collect()
    }
}

/// A message of the worker.
pub(crate) struct Message<'a> {
    pub packet: Packet<'a>,
    /// The data when it lies in shared memory.
    spilled: Option<Buffer>,
    /// The inline data in memory of its own: made when the first tensor is taken from it.
    copied: OnceCell<Buffer>,
}

impl Message<'_> {
    /// The inline data, which outlives the packet.
    fn data(&self) -> &Buffer {
        match &self.spilled {
            Some(data) => data,
            None => self.copied.get_or_init(|| self.packet.payload.data.to_vec().into()),
        }
    }
}

impl Link {
    /// Puts the header before a message, and the blocks that the worker gets back.
    pub(crate) fn seal(&self, message: &Outgoing) -> Result<Sealed> {
        let released = self.releases.take();
        let (meta, data) = (&message.meta, &message.data);
        let meta_length = released.len() * 8 + meta.len();
        let is_spilled = HEADER_LENGTH + meta_length + DATA_ALIGNMENT + data.len() > PACKET_LIMIT;
        let start = if is_spilled { 0 } else { HEADER_LENGTH };
        let meta_end = start + meta_length;
        let padding = match data.is_empty() {
            true => 0,
            false => meta_end.next_multiple_of(DATA_ALIGNMENT) - meta_end,
        };
        let header = Header {
            kind: message.kind,
            flags: message.flags,
            released: u16::try_from(released.len()).unwrap_or(u16::MAX),
            count: message.count,
            id: message.id,
            meta_length: u32::try_from(meta_length + padding).unwrap_or(u32::MAX),
            is_spilled,
        };
        let mut head = Vec::with_capacity(HEADER_LENGTH + released.len() * 8 + 16);
        head.extend(released.iter().flat_map(|offset| offset.to_le_bytes()));
        let whole = Sealed { head, padding, is_spilled: false };
        let head = header.bytes();
        if is_spilled {
            return self.spill(head, &whole.bytes(message)).inspect_err(|_| {
                released.iter().for_each(|&offset| self.releases.add(offset, 0));
            });
        }
        let head = [&head, &whole.head[..]].concat();
        Ok(Sealed { head, ..whole })
    }

    fn spill(&self, header: [u8; HEADER_LENGTH], content: &[u8]) -> Result<Sealed> {
        let offset = self.inbox.put(content)?;
        self.wake.start_ticking();
        let length = content.len() as u64;
        let head = [&header[..], &offset.to_le_bytes(), &length.to_le_bytes()].concat();
        Ok(Sealed { head, padding: 0, is_spilled: true })
    }

    /// Opens a packet of the worker, takes the blocks back that it has no more use for, and gives the
    /// message to `read`.
    pub(crate) fn open<T>(
        &self,
        packet: &[u8],
        read: impl FnOnce(&Message<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let (header, offset, length) = match Parsed::read(packet)? {
            Parsed::Whole(packet) => {
                self.take_back(&packet)?;
                return read(&Message { packet, spilled: None, copied: OnceCell::new() });
            }
            Parsed::Spilled { header, offset, length } => (header, offset, length),
        };
        let length = usize::try_from(length).map_err(|_| Malformed("a block is too long"))?;
        let content = self.block(offset, length)?;
        let meta_length = usize::try_from(header.meta_length).unwrap_or(usize::MAX);
        let cut_short = Malformed("it is cut short");
        // A copy: what is decided on must not change any more.
        let meta = content.get(..meta_length).ok_or(cut_short)?.to_vec();
        let data = content.get(meta_length..length).ok_or(cut_short)?;
        let packet = Packet::read(header, &meta, data)?;
        self.take_back(&packet)?;
        let spilled = Buffer::from(content.slice(meta_length..length));
        read(&Message { packet, spilled: Some(spilled), copied: OnceCell::new() })
    }

    fn take_back(&self, packet: &Packet<'_>) -> Result<(), Malformed> {
        let is_ours = packet.released().all(|offset| self.inbox.give_back(offset));
        is_ours.then_some(()).ok_or(Malformed("it gives back a block that was not given to it"))
    }

    /// A block of the outbox; the worker gets it back when the last clone is dropped.
    fn block(&self, offset: u64, length: usize) -> Result<Bytes, Malformed> {
        let mapping = self.outbox.mapping(offset, length)?;
        let block = OutboxBlock::new(mapping, offset, length, Arc::clone(&self.releases));
        let block = block.ok_or(Malformed("a block lies outside of the shared memory"))?;
        self.wake.start_ticking();
        Ok(Bytes::from_owner(block))
    }

    /// A tensor of `message` with its bytes. Large ones stay where the worker put them.
    pub(crate) fn tensor(
        &self,
        head: &TensorHead<'_>,
        message: &Message<'_>,
    ) -> Result<Tensor, Malformed> {
        let data = match head.place {
            Place::Arena(offset) => self.block(offset, head.byte_length)?.into(),
            Place::Inline(start) => {
                let end = start.checked_add(head.byte_length);
                let data = end.and_then(|end| message.data().slice(start..end));
                data.ok_or(Malformed("a tensor lies outside of its message"))?
            }
        };
        let is_text = head.data_type.byte_size().is_none();
        let count = head.shape.element_count().unwrap_or(0);
        if is_text && !data.host().is_ok_and(|data| holds_strings(data, count)) {
            return Err(Malformed("a BYTES tensor does not hold its elements"));
        }
        Ok(Tensor::new(head.name, head.data_type, head.shape.clone(), data))
    }
}
