//! Members of a JSON object by where their values start: the order in which they are read is Triton's, not the text's.

use super::{
    decode_error::{DecodeError, Result},
    json::Cursor,
};

/// Reads the member `field`, whose value starts at `at` if the object has it.
pub(super) fn read_member<'a, T, E: Into<DecodeError>>(
    cursor: &Cursor<'a>,
    at: Option<usize>,
    field: &'static str,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T, E>,
) -> Result<T> {
    read_at(cursor, at.ok_or(DecodeError::MissingField(field))?, field, read)
}

/// Reads the value of `field` that starts at `at`; an error names the field.
pub(super) fn read_at<'a, T, E: Into<DecodeError>>(
    cursor: &Cursor<'a>,
    at: usize,
    field: &str,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T, E>,
) -> Result<T> {
    read(&mut cursor.at(at)).map_err(|error| error.into().in_field(field))
}
