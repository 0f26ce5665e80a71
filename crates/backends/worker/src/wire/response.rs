//! A worker's response in a message, and the numbers of error codes.

use galatea_types::Code;

use crate::wire::{
    read::{ProtocolError, Reader, size},
    tensor::TensorHead,
};

/// The content of a response besides its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No content: an error only.
    None,
    /// Outputs, or an empty list of them.
    Outputs,
    /// A request to execute it again: it goes back to its scheduler.
    Rescheduled,
}

impl Body {
    fn read(number: u8) -> Result<Self, ProtocolError> {
        match number {
            0 => Ok(Self::None),
            1 => Ok(Self::Outputs),
            2 => Ok(Self::Rescheduled),
            _ => Err(ProtocolError("a response has an unknown body")),
        }
    }
}

/// A response as a message describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseHead<'a> {
    /// Key of the request.
    pub key: u64,
    /// The error. `None`: no error.
    pub error: Option<(Code, &'a str)>,
    /// Python's traceback of the error, for the log; usually empty.
    pub traceback: &'a str,
    /// The content besides the error.
    pub body: Body,
    /// Parameters as JSON; empty if there are none.
    pub parameters: &'a [u8],
    /// Outputs in their order.
    pub outputs: Vec<TensorHead<'a>>,
}

impl<'a> ResponseHead<'a> {
    /// Reads a response from the front of meta.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, ProtocolError> {
        let key = reader.u64()?;
        let code = reader.u8()?;
        let body = Body::read(reader.u8()?)?;
        let output_count = usize::from(reader.u16()?);
        let error_length = size(reader.u32()?)?;
        let parameters_length = size(reader.u32()?)?;
        let traceback_length = size(reader.u32()?)?;
        let text = reader.text(error_length)?;
        let traceback = reader.text(traceback_length)?;
        let parameters = reader.bytes(parameters_length)?;
        let outputs =
            (0..output_count).map(|_| TensorHead::read(reader)).collect::<Result<_, _>>()?;
        let error = code_from_number(code)?.map(|code| (code, text));
        Ok(Self { key, error, traceback, body, parameters, outputs })
    }
}

const CODES: [Code; 8] = [
    Code::Unknown,
    Code::Internal,
    Code::NotFound,
    Code::InvalidArg,
    Code::Unavailable,
    Code::Unsupported,
    Code::AlreadyExists,
    Code::Cancelled,
];

/// Returns the error code with this number in the protocol, or `None` for 0.
///
/// # Errors
/// When no code has this number.
pub fn code_from_number(number: u8) -> Result<Option<Code>, ProtocolError> {
    let Some(index) = usize::from(number).checked_sub(1) else { return Ok(None) };
    CODES.get(index).copied().map(Some).ok_or(ProtocolError("an error code is unknown"))
}

/// Returns an error code's number in the protocol, which is Triton's: an exhausted resource counts as unavailable there.
pub fn code_number(code: Code) -> u8 {
    let code = if code == Code::Exhausted { Code::Unavailable } else { code };
    let index = CODES.iter().position(|&c| c == code).unwrap_or(0);
    u8::try_from(index + 1).unwrap_or(1)
}
