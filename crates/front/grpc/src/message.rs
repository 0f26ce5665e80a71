//! One message: its prefix, its length limit, and its share of the memory budget.

use std::fmt;

use bytes::BufMut;
use galatea_protocol::grpc::Pieces;
use galatea_types::{MemoryReservation, OverBudget};
use tonic::Status;

/// The length of the prefix: a flag byte and the length of the message.
pub(crate) const PREFIX_LEN: usize = 5;

/// The longest message of a call that only has names and flags.
pub(crate) const MAX_SMALL_MESSAGE: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
pub(crate) enum MaxLength {
    /// `--grpc-max-message-size`
    Option(usize),
    /// [`MAX_SMALL_MESSAGE`]
    Small,
}

impl MaxLength {
    fn limit(self) -> usize {
        match self {
            Self::Option(limit) => limit,
            Self::Small => MAX_SMALL_MESSAGE,
        }
    }

    pub fn at_most(self, bytes: usize) -> Self {
        Self::Option(self.limit().min(bytes))
    }

    pub fn check(self, length: usize) -> Result<(), Status> {
        self.check_as(length, format_args!("{length}"))
    }

    /// Checks a message of which `length` bytes are decompressed so far.
    pub fn check_decompressed(self, length: usize) -> Result<(), Status> {
        self.check_as(length, format_args!("{length} or more when decompressed"))
    }

    fn check_as(self, length: usize, shown: fmt::Arguments<'_>) -> Result<(), Status> {
        let limit = self.limit();
        if length <= limit {
            return Ok(());
        }
        let advice = match self {
            Self::Option(_) => ". Use --grpc-max-message-size to increase the limit.",
            Self::Small => "",
        };
        let text = format!("Received message larger than max ({shown} vs. {limit}){advice}");
        Err(Status::resource_exhausted(text))
    }
}

#[derive(Debug)]
pub(crate) struct Message {
    pub bytes: Pieces,
    pub memory: MemoryReservation,
}

/// Returns the prefix of a message. The length was checked against the limit, which fits the field.
pub(crate) fn prefix(length: usize) -> [u8; PREFIX_LEN] {
    let mut prefix = [0; PREFIX_LEN];
    (&mut prefix[1..]).put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    prefix
}

/// Decodes a message. Fails if it is not valid Protobuf.
pub(crate) fn decode<T: prost::Message + Default>(message: Pieces) -> Result<T, Status> {
    T::decode(message).map_err(|error| Status::internal(error.to_string()))
}

pub(crate) fn over_budget(error: OverBudget) -> Status {
    Status::resource_exhausted(error.to_string())
}
