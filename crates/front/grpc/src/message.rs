//! One message: its prefix, how long it may be, and what it holds of the memory budget.

use std::fmt;

use bytes::BufMut;
use galatea_protocol::grpc::Pieces;
use galatea_types::{MemoryReservation, OverBudget};
use tonic::Status;

/// A flag byte and the length of the message come before it.
pub(crate) const PREFIX_LEN: usize = 5;

/// Longest message of a call that carries names and flags only.
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

    /// Of a message of which so much is decompressed.
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

/// The message's length has been checked against the limit, which fits the field.
pub(crate) fn prefix(length: usize) -> [u8; PREFIX_LEN] {
    let mut prefix = [0; PREFIX_LEN];
    (&mut prefix[1..]).put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    prefix
}

/// Reads a message, refusing what is none as gRPC wants it.
pub(crate) fn decode<T: prost::Message + Default>(message: Pieces) -> Result<T, Status> {
    T::decode(message).map_err(|error| Status::internal(error.to_string()))
}

pub(crate) fn over_budget(error: OverBudget) -> Status {
    Status::resource_exhausted(error.to_string())
}
