//! The protobuf text format, as `config.pbtxt` uses it.
//!
//! Accepts and rejects what Python protobuf's `text_format.Parse` does, and reads the same values, also after a byte order mark.
//! `tests/python/test_config_corpus.py` compares the two on generated documents.

mod error;
mod lexer;
mod number;
mod parser;
mod placeholder;
mod places;
mod scalar;
mod string;
pub(crate) mod suggest;
mod writer;

pub use error::TextError;
pub use parser::parse_text;
pub(crate) use parser::{find_places, mistakes};
pub(crate) use placeholder::explained as with_placeholder;
pub use writer::to_text;

#[cfg(test)]
mod tests;
