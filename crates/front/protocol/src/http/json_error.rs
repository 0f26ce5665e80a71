//! The errors of the JSON reader. Clients match on their texts, which are those of Triton's parser.

use std::fmt;

use galatea_types::Error;
use thiserror::Error;

/// The deepest nesting of arrays and objects.
pub(super) const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum JsonError {
    #[error("failed to parse the request JSON buffer: {fault} at {offset}")]
    Syntax {
        fault: SyntaxFault,
        /// The offset in bytes from the beginning of the text.
        offset: usize,
    },
    #[error("JSON nesting depth exceeds maximum allowed limit ({MAX_DEPTH})")]
    TooDeep,
    #[error("attempt to access JSON {0}")]
    WrongKind(ExpectedKind),
}

/// A fault in the syntax of a text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum SyntaxFault {
    #[error("The document is empty.")]
    Empty,
    #[error("The document root must not be followed by other values.")]
    RootNotSingular,
    #[error("Invalid value.")]
    InvalidValue,
    #[error("Missing a name for object member.")]
    MissingName,
    #[error("Missing a colon after a name of object member.")]
    MissingColon,
    #[error("Missing a comma or '}}' after an object member.")]
    MissingCommaInObject,
    #[error("Missing a comma or ']' after an array element.")]
    MissingCommaInArray,
    #[error("Missing a closing quotation mark in string.")]
    MissingQuotationMark,
    #[error("Invalid escape character in string.")]
    InvalidEscape,
    #[error("Incorrect hex digit after \\u escape in string.")]
    InvalidHexDigit,
    #[error("The surrogate pair in string is invalid.")]
    InvalidSurrogate,
    #[error("Miss fraction part in number.")]
    MissingFraction,
    #[error("Miss exponent in number.")]
    MissingExponent,
    #[error("Number too big to be stored in double.")]
    NumberTooBig,
}

impl SyntaxFault {
    pub fn at(self, offset: usize) -> JsonError {
        JsonError::Syntax { fault: self, offset }
    }
}

/// The kind of value that was expected but not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedKind {
    String,
    Boolean,
    Number,
    Unsigned,
    Signed,
    Array,
}

impl fmt::Display for ExpectedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "non-string as string",
            Self::Boolean => "non-boolean as boolean",
            Self::Number => "non-number as double",
            Self::Unsigned => "non-unsigned-integer as unsigned-integer",
            Self::Signed => "non-signed-integer as signed-integer",
            Self::Array => "non-array as array",
        })
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        let text = error.to_string();
        match error {
            JsonError::TooDeep => Self::invalid_arg(text),
            JsonError::Syntax { .. } | JsonError::WrongKind(_) => Self::internal(text),
        }
    }
}
