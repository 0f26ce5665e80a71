//! The report of a model's exception in a message.

use crate::wire::{
    packet::Payload,
    read::{ProtocolError, Reader, size},
};

/// The meta of READY, COMPLETED and EXECUTED with the ERROR flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The text that clients read.
    pub message: &'a str,
    /// Python's own traceback, for the log. Empty if the reason is no exception of the model's code.
    pub traceback: &'a str,
}

impl<'a> Failure<'a> {
    /// Reads the payload of a message with the ERROR flag.
    pub fn read(payload: Payload<'a>) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(payload.meta);
        let length = size(reader.u32()?)?;
        let message = reader.text(length)?;
        let traceback = reader.text(reader.rest().len())?;
        Ok(Self { message, traceback })
    }
}
