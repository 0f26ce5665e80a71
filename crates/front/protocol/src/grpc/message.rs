//! A request message whose fields were found and checked, but not yet built.

use bytes::{Buf, Bytes};
use galatea_types::Error;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::{
    fault::WireFault,
    fields::{MalformedMessage, Parsed},
    input::{InputFields, OutputFields},
    parameters::entry,
    pieces::Pieces,
};

/// The most memory of a request, as a multiple of its own bytes, which are included ...
const MAX_GROWTH: usize = 4;
/// ... and the memory that any request may use: a mask of 64-bit integers grows eightfold.
const MIN_ALLOWANCE: usize = 16 << 20;
/// The approximate memory of an input, an output or a raw tensor besides its bytes.
const TENSOR_WEIGHT: usize = 320;
/// The approximate memory of a parameter.
const PARAMETER_WEIGHT: usize = 160;

/// The longest name or id in bytes, because messages about the request contain them.
const MAX_NAME: usize = 64 << 10;

mod number {
    pub const MODEL_NAME: u32 = 1;
    pub const MODEL_VERSION: u32 = 2;
    pub const ID: u32 = 3;
    pub const PARAMETERS: u32 = 4;
    pub const INPUTS: u32 = 5;
    pub const OUTPUTS: u32 = 6;
    pub const RAW_INPUT_CONTENTS: u32 = 7;
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageError {
    #[error("Unable to parse request")]
    Unreadable(#[from] MalformedMessage),
    #[error("Unable to parse request ({0})")]
    Fault(WireFault),
    #[error("the request id is longer than {MAX_NAME} bytes")]
    LongId,
    #[error("a name in the request is longer than {MAX_NAME} bytes")]
    LongName,
    #[error(
        "a request of {length} bytes may take {allowed} bytes in memory, and this one would take more: send its \
         tensors in raw_input_contents, with fewer inputs, outputs and parameters"
    )]
    TooLarge { length: usize, allowed: usize },
}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Self {
        let new = match error {
            MessageError::Unreadable(_) | MessageError::Fault(_) => Error::internal,
            MessageError::LongId | MessageError::LongName | MessageError::TooLarge { .. } => {
                Error::invalid_arg
            }
        };
        new(error.to_string()).with_source(error)
    }
}

/// The fields of one ModelInferRequest, as slices of the received bytes.
///
/// The message was checked to be well-formed, down to the numbers in packed fields. The memory for building it is known
/// and bounded. Nothing else about its bytes is trusted.
#[derive(Debug, Default)]
pub struct RequestMessage {
    pub(super) model_name: Bytes,
    pub(super) model_version: Bytes,
    pub(super) id: Bytes,
    pub(super) parameters: Vec<Bytes>,
    pub(super) inputs: Vec<Bytes>,
    pub(super) outputs: Vec<Bytes>,
    pub(super) raw_input_contents: Vec<Bytes>,
    weight: RequestMemory,
}

/// The memory of a request besides its message, compared with the memory that it may use.
#[derive(Clone, Copy, Debug, Default)]
struct RequestMemory {
    length: usize,
    taken: usize,
}

impl RequestMemory {
    fn allowed(self) -> usize {
        self.length.saturating_mul(MAX_GROWTH).max(MIN_ALLOWANCE)
    }

    fn add(&mut self, bytes: usize) -> Result<(), MessageError> {
        self.taken = self.taken.saturating_add(bytes);
        let Self { length, taken } = *self;
        if length.saturating_add(taken) <= self.allowed() {
            return Ok(());
        }
        Err(MessageError::TooLarge { length, allowed: self.allowed() })
    }
}

impl RequestMessage {
    /// Finds the fields of a message.
    ///
    /// # Errors
    /// `Internal` for bytes that are not such a message, `InvalidArg` for one that would grow too much.
    pub fn read(message: Pieces) -> galatea_types::Result<Self> {
        Ok(Self::find(message)?)
    }

    /// Returns the name of the requested model.
    pub fn model_name(&self) -> &str {
        text(&self.model_name)
    }

    /// Returns the version as the client wrote it; empty if the server may choose.
    pub fn model_version(&self) -> &str {
        text(&self.model_version)
    }

    /// Returns the client's id; empty if absent.
    pub fn id(&self) -> &str {
        text(&self.id)
    }

    /// Returns the most bytes of the decoded request, besides those of the message.
    pub fn decoded_size(&self) -> usize {
        self.weight.taken
    }

    fn find(mut message: Pieces) -> Result<Self, MessageError> {
        let mut found = Self {
            weight: RequestMemory { length: message.remaining(), taken: 0 },
            ..Self::default()
        };
        let length = message.remaining();
        while message.has_remaining() {
            let start = length - message.remaining();
            let Ok((number, wire_type)) = decode_key(&mut message) else {
                return Err(MessageError::Fault(WireFault::without_field(start)));
            };
            let is_bytes = wire_type == WireType::LengthDelimited;
            let fault = |_| MessageError::Fault(WireFault::of_form(number, start, is_bytes));
            if (number::MODEL_NAME..=number::RAW_INPUT_CONTENTS).contains(&number) {
                let value = delimited(wire_type, &mut message).map_err(fault)?;
                found.check(number, &value).map_err(|error| match error {
                    MessageError::Unreadable(_) => {
                        let start = length - message.remaining() - value.len();
                        let index = found.count(number);
                        MessageError::Fault(WireFault::of_field(number, index, &value, start))
                    }
                    other => other,
                })?;
                found.keep(number, value);
            } else {
                let skipped = skip_field(wire_type, number, &mut message, DecodeContext::default());
                if skipped.is_err() {
                    return Err(MessageError::Fault(WireFault::of_form(number, start, true)));
                }
            }
        }
        Ok(found)
    }

    fn check(&mut self, number: u32, value: &Bytes) -> Result<(), MessageError> {
        match number {
            number::MODEL_NAME | number::MODEL_VERSION => check_text(value, MessageError::LongName),
            number::ID => {
                self.weight.add(value.len())?;
                check_text(value, MessageError::LongId)
            }
            number::PARAMETERS => {
                check_name(entry(value)?.0)?;
                self.weight.add(PARAMETER_WEIGHT + value.len())
            }
            number::INPUTS => {
                self.weight.add(TENSOR_WEIGHT)?;
                self.weigh(&InputFields::parse(value)?)
            }
            number::OUTPUTS => {
                let output = OutputFields::parse(value)?;
                check_name(output.name)?;
                self.weight.add(TENSOR_WEIGHT + output.name.len())?;
                self.weight.add(output.parameter_count * PARAMETER_WEIGHT)
            }
            _ => self.weight.add(TENSOR_WEIGHT),
        }
    }

    fn keep(&mut self, number: u32, value: Bytes) {
        match number {
            number::MODEL_NAME => self.model_name = value,
            number::MODEL_VERSION => self.model_version = value,
            number::ID => self.id = value,
            number::PARAMETERS => self.parameters.push(value),
            number::INPUTS => self.inputs.push(value),
            number::OUTPUTS => self.outputs.push(value),
            _ => self.raw_input_contents.push(value),
        }
    }

    /// Returns the number of values of a repeated field so far.
    fn count(&self, number: u32) -> usize {
        match number {
            number::PARAMETERS => self.parameters.len(),
            number::INPUTS => self.inputs.len(),
            number::OUTPUTS => self.outputs.len(),
            _ => self.raw_input_contents.len(),
        }
    }

    fn weigh(&mut self, input: &InputFields<'_>) -> Result<(), MessageError> {
        check_name(input.name)?;
        self.weight.add(input.name.len() + input.rank * size_of::<i64>())?;
        self.weight.add(input.parameter_count * PARAMETER_WEIGHT)?;
        self.weight.add(input.contents.map_or(0, |contents| contents.byte_size(input.data_type())))
    }
}

/// Returns the bytes of a message that decoding reads: all except those of raw tensors, which are shared unless they
/// span several pieces.
pub fn decoding_work(message: &Pieces) -> usize {
    let mut shared = 0;
    for_each_delimited(message, |found, length, is_cut| {
        if found == number::RAW_INPUT_CONTENTS && !is_cut {
            shared += length;
        }
    });
    message.remaining() - shared
}

/// Counts the field `number`, which has a length, in any message before it is built.
pub fn count_fields(message: &Pieces, number: u32) -> usize {
    let mut count = 0;
    for_each_delimited(message, |found, _, _| count += usize::from(found == number));
    count
}

/// Calls `see` for each field with a length: number, length, and if it spans several pieces. Stops where it cannot read.
fn for_each_delimited(message: &Pieces, mut see: impl FnMut(u32, usize, bool)) {
    let mut rest = message.clone();
    while let Ok((number, wire_type)) = decode_key(&mut rest) {
        if wire_type != WireType::LengthDelimited {
            if skip_field(wire_type, number, &mut rest, DecodeContext::default()).is_err() {
                return;
            }
            continue;
        }
        let Ok(length) = decode_varint(&mut rest).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        else {
            return;
        };
        if length > rest.remaining() {
            return;
        }
        see(number, length, rest.is_cut_within(length));
        rest.advance(length);
    }
}

/// Returns a field that must have a length and be complete. Nothing is allocated before that is checked.
fn delimited(wire_type: WireType, message: &mut Pieces) -> Parsed<Bytes> {
    if wire_type != WireType::LengthDelimited {
        return Err(MalformedMessage);
    }
    let length = usize::try_from(decode_varint(message)?).map_err(|_| MalformedMessage)?;
    if length > message.remaining() {
        return Err(MalformedMessage);
    }
    Ok(message.copy_to_bytes(length))
}

fn check_text(bytes: &Bytes, too_long: MessageError) -> Result<(), MessageError> {
    std::str::from_utf8(bytes).map_err(MalformedMessage::from)?;
    if bytes.len() <= MAX_NAME { Ok(()) } else { Err(too_long) }
}

fn check_name(name: &str) -> Result<(), MessageError> {
    if name.len() <= MAX_NAME { Ok(()) } else { Err(MessageError::LongName) }
}

/// Returns the text of bytes that were checked.
fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
