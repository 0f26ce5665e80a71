//! Members of a JSON object by where their values start: the order in which they are read is Triton's, not the text's.

use galatea_types::{Error, Result};

use super::json::Cursor;

/// Reads the member `field`, whose value starts at `at` if the object has it.
pub(crate) fn read_member<'a, T>(
    cursor: &Cursor<'a>,
    at: Option<usize>,
    field: &str,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T>,
) -> Result<T> {
    let Some(at) = at else {
        return Err(Error::internal(format!(
            "Unable to parse '{field}': attempt to access non-existing object member '{field}'"
        )));
    };
    read_at(cursor, at, field, read)
}

/// Reads the value of `field` that starts at `at`; an error names the field.
pub(crate) fn read_at<'a, T>(
    cursor: &Cursor<'a>,
    at: usize,
    field: &str,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T>,
) -> Result<T> {
    read(&mut cursor.at(at)).map_err(|e| e.prefixed(format_args!("Unable to parse '{field}': ")))
}
