//! Messages as packets. A message that is too large for a packet goes through shared memory.

use std::{cell::OnceCell, io::IoSlice};

use galatea_types::{Buffer, MemoryReservation, OverBudget, Result, Tensor};

use crate::{
    memory::SharedMemory,
    wire::{
        HEADER_LENGTH, Header, OutgoingMessage, PACKET_LIMIT, Packet, ParsedPacket, ProtocolError,
        TensorHead, TensorPlace, holds_strings,
    },
};

/// The parts of a packet besides its message.
pub(super) struct EncodedPacket {
    /// The header, and the released blocks or the place of the spilled content.
    head: Vec<u8>,
    padding: usize,
    is_spilled: bool,
}

/// Alignment of inline data, in bytes.
const DATA_ALIGNMENT: usize = 16;
const ZEROS: [u8; DATA_ALIGNMENT] = [0; DATA_ALIGNMENT];

impl EncodedPacket {
    /// Puts the header and the released blocks before a message. A message in shared memory carries no released blocks,
    /// because they would lie there with it: a packet that is taken back must hold them.
    pub fn new(message: &OutgoingMessage, memory: &SharedMemory) -> Result<Self> {
        let mut released = memory.releases.take();
        let (meta, data) = (&message.meta, &message.data);
        let length = released.len() * 8 + meta.len() + DATA_ALIGNMENT + data.len();
        let is_spilled = HEADER_LENGTH + length > PACKET_LIMIT;
        if is_spilled {
            released.drain(..).for_each(|offset| memory.releases.add(offset, 0));
        }
        let meta_length = released.len() * 8 + meta.len();
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
        let whole = Self { head, padding, is_spilled: false };
        let head = header.bytes();
        if is_spilled {
            return spill(memory, head, &whole.to_bytes(message));
        }
        let head = [&head, &whole.head[..]].concat();
        Ok(Self { head, ..whole })
    }

    pub fn parts<'a>(&'a self, message: &'a OutgoingMessage) -> [IoSlice<'a>; 4] {
        let padding = ZEROS.get(..self.padding).unwrap_or_default();
        let follows = |part: &'a [u8]| IoSlice::new(if self.is_spilled { &[] } else { part });
        [IoSlice::new(&self.head), follows(&message.meta), follows(padding), follows(&message.data)]
    }

    pub fn to_bytes(&self, message: &OutgoingMessage) -> Vec<u8> {
        self.parts(message).iter().flat_map(|part| part.iter().copied()).collect()
    }
}

fn spill(
    memory: &SharedMemory,
    header: [u8; HEADER_LENGTH],
    content: &[u8],
) -> Result<EncodedPacket> {
    let offset = memory.put(content)?;
    let length = content.len() as u64;
    let head = [&header[..], &offset.to_le_bytes(), &length.to_le_bytes()].concat();
    Ok(EncodedPacket { head, padding: 0, is_spilled: true })
}

/// A message from the other side.
pub struct Message<'a> {
    /// Its header, meta and inline data.
    pub packet: Packet<'a>,
    memory: &'a SharedMemory,
    /// The data, if it lies in shared memory.
    spilled: Option<Buffer>,
    /// A copy of the inline data that outlives the packet. The first tensor taken from it makes the copy.
    copied: OnceCell<Buffer>,
}

impl Message<'_> {
    /// Opens a packet of the worker, frees the blocks that the worker gives back, and passes the message to `read`.
    pub(crate) fn open<T>(
        packet: &[u8],
        memory: &SharedMemory,
        read: impl FnOnce(&Message<'_>) -> Result<T, ProtocolError>,
    ) -> Result<T, ProtocolError> {
        let copied = OnceCell::new();
        let (header, offset, length) = match ParsedPacket::read(packet)? {
            ParsedPacket::Whole(packet) => {
                free_released(&packet, memory)?;
                return read(&Message { packet, memory, spilled: None, copied });
            }
            ParsedPacket::Spilled { header, offset, length } => (header, offset, length),
        };
        let length = usize::try_from(length).map_err(|_| ProtocolError("a block is too long"))?;
        let content = memory.block(offset, length)?;
        let meta_length = usize::try_from(header.meta_length).unwrap_or(usize::MAX);
        let cut_short = ProtocolError("it is cut short");
        let meta = content.get(..meta_length).ok_or(cut_short)?;
        let data = content.get(meta_length..length).ok_or(cut_short)?;
        let packet = Packet::read(header, meta, data)?;
        free_released(&packet, memory)?;
        let spilled = Some(Buffer::from(content.slice(meta_length..length)));
        read(&Message { packet, memory, spilled, copied })
    }

    /// Returns a tensor of the message with its bytes. Large ones stay where the worker put them.
    pub(crate) fn tensor(&self, head: &TensorHead<'_>) -> Result<Tensor, ProtocolError> {
        let data = match head.place {
            TensorPlace::Arena(offset) => self.memory.block(offset, head.byte_length)?.into(),
            TensorPlace::Inline(start) => {
                let end = start.checked_add(head.byte_length);
                let data = end.and_then(|end| self.data().slice(start..end));
                data.ok_or(ProtocolError("a tensor lies outside of its message"))?
            }
        };
        let is_text = head.data_type.byte_size().is_none();
        let count = head.shape.element_count().unwrap_or(0);
        if is_text && !data.host().is_ok_and(|data| holds_strings(data, count)) {
            return Err(ProtocolError("a BYTES tensor does not hold its elements"));
        }
        Ok(Tensor::new(head.name, head.data_type, head.shape.clone(), data))
    }

    /// Reserves room for these tensors in the server's memory. Hold it until they are read. Tensors that find no room go
    /// back to the worker unread.
    ///
    /// # Errors
    /// When there is no room.
    pub fn admit(&self, heads: &[TensorHead<'_>]) -> Result<MemoryReservation, OverBudget> {
        let in_arena = heads.iter().filter_map(|head| match head.place {
            TensorPlace::Arena(offset) => Some((offset, head.byte_length)),
            TensorPlace::Inline(_) => None,
        });
        let bytes = in_arena.clone().fold(0_usize, |sum, (_, length)| sum.saturating_add(length));
        self.memory.admit(bytes).inspect_err(|_| {
            in_arena.for_each(|(offset, length)| self.memory.refuse(offset, length));
        })
    }

    /// Reads all of `heads`, as [`Message::tensor`] does.
    pub fn tensors(&self, heads: &[TensorHead<'_>]) -> Result<Vec<Tensor>, ProtocolError> {
        heads.iter().map(|head| self.tensor(head)).collect()
    }

    /// Parses meta as JSON.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn json(&self) -> Result<serde_json::Value, ProtocolError> {
        serde_json::from_slice(self.packet.payload.meta)
            .map_err(|_| ProtocolError("it is not JSON"))
    }

    /// Returns the inline data in memory that outlives the packet.
    fn data(&self) -> &Buffer {
        match &self.spilled {
            Some(data) => data,
            None => self.copied.get_or_init(|| self.packet.payload.data.to_vec().into()),
        }
    }
}

/// Undoes the effects of sending this packet of the server's own on its memory.
pub(super) fn undo(packet: &[u8], memory: &SharedMemory) {
    match ParsedPacket::read(packet) {
        Ok(ParsedPacket::Whole(packet)) => {
            packet.released().for_each(|offset| memory.releases.add(offset, 0));
        }
        Ok(ParsedPacket::Spilled { offset, .. }) => {
            memory.free(offset);
        }
        // Impossible: this side wrote the packet.
        Err(ProtocolError(_)) => {}
    }
}

fn free_released(packet: &Packet<'_>, memory: &SharedMemory) -> Result<(), ProtocolError> {
    let is_known = packet.released().all(|offset| memory.free(offset));
    is_known.then_some(()).ok_or(ProtocolError("it gives back a block that was not given to it"))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use galatea_types::DataType;

    use super::*;
    use crate::{
        memory::{ArenaLimits, Mapping, MemoryRules},
        waker::EventThreadWaker,
        wire::{Reader, RequestHead, SentRequest, kind, put_request},
    };

    const LIMITS: ArenaLimits = ArenaLimits { initial: 4096, growth: 4096, max: None };

    fn memory() -> SharedMemory {
        SharedMemory::new(
            MemoryRules::of(LIMITS),
            Arc::new(EventThreadWaker::new().expect("an eventfd")),
        )
        .expect("memory")
    }

    #[test]
    fn tensors_of_a_message_round_trip() {
        let memory = memory();
        let request = galatea_types::InferRequest::new("m");
        let tensor = Tensor::new("IN", DataType::Uint8, [3], vec![1, 2, 3]);
        let inputs = [tensor];
        let sent = SentRequest {
            key: 1,
            model_version: 1,
            request: &request,
            inputs: &inputs,
            outputs: &[],
            trace: None,
        };
        let mut message = OutgoingMessage::new(kind::INFER, 7);
        put_request(&mut message, &sent, &mut memory.allocation()).expect("written");
        let packet = EncodedPacket::new(&message, &memory).expect("encoded").to_bytes(&message);
        let read = |message: &Message<'_>| {
            let head = RequestHead::read(&mut Reader::new(message.packet.payload.meta))?;
            message.tensors(&head.inputs)
        };
        let tensors = Message::open(&packet, &memory, read).expect("read");
        assert_eq!(tensors[0].host().expect("host memory"), [1, 2, 3]);
    }

    #[test]
    fn a_long_message_goes_through_shared_memory() {
        let memory = memory();
        let message = OutgoingMessage::with_text(kind::CALL_RESULT, &"x".repeat(PACKET_LIMIT));
        let packet = EncodedPacket::new(&message, &memory).expect("encoded").to_bytes(&message);
        let Ok(ParsedPacket::Spilled { offset, length, .. }) = ParsedPacket::read(&packet) else {
            panic!("not spilled")
        };
        assert_eq!((packet.len(), length), (HEADER_LENGTH + 16, PACKET_LIMIT as u64));
        assert!(memory.free(offset), "a block of the inbox");
    }

    #[test]
    fn blocks_not_given_to_the_worker_are_malformed() {
        let memory = memory();
        let header = Header {
            kind: kind::RELEASE_TO_SERVER,
            released: 1,
            meta_length: 8,
            ..Header::default()
        };
        let packet = [&header.bytes()[..], &64_u64.to_le_bytes()].concat();
        let error = Message::open(&packet, &memory, |_| Ok(())).expect_err("not its block");
        assert_eq!(error, ProtocolError("it gives back a block that was not given to it"));
    }

    /// What a worker has sent stays what was checked, whatever the worker writes there afterwards: here, lengths of
    /// strings that lead far out of their tensor.
    #[test]
    fn a_sent_message_cannot_be_changed_by_the_worker() {
        let memory = memory();
        let [_, outbox] = memory.descriptors();
        let worker = Mapping::new(outbox, true).expect("mapped");
        let sent = [2, 0, 0, 0, b'a', b'b', 1, 0, 0, 0, b'c'];
        // SAFETY: this thread alone writes there, and the server's side only copies from it.
        let write = |bytes: &[u8]| assert!(unsafe { worker.write(64, bytes) });
        write(&sent);
        let head = TensorHead {
            name: "OUT",
            data_type: DataType::Bytes,
            shape: [2].into(),
            place: TensorPlace::Arena(64),
            byte_length: sent.len(),
        };
        let header = Header { kind: kind::RESPONSE, ..Header::default() };
        let read = || Message::open(&header.bytes(), &memory, |message| message.tensor(&head));
        let tensor = read().expect("two strings");
        write(&[0xff; 11]);
        assert_eq!(tensor.host().expect("host memory"), sent);
        read().expect_err("no strings any more");

        // While it is read, too: refused, or whole and checked.
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    write(&[0xff; 11]);
                    write(&sent);
                }
            });
            for _ in 0..10_000 {
                if let Ok(tensor) = read() {
                    let bytes = tensor.host().expect("host memory");
                    assert!(crate::wire::holds_strings(bytes, 2), "{bytes:?}");
                }
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
