//! Members of a JSON object, in any order in the text. Triton looks them up in its own order, so of several mistakes
//! the first in that order is reported.

use super::{
    decode_error::{DecodeError, Result},
    json::{self, JsonCursor},
};

/// A member of an object, read in place, so that the text is read in one pass. An unreadable value is skipped, and read
/// again in its turn for its error.
#[derive(Debug, Default)]
pub(super) enum Member<T> {
    /// The object does not have it.
    #[default]
    Missing,
    /// The value.
    Read(T),
    /// The position of an unreadable value.
    Unread(usize),
}

impl<T> Member<T> {
    /// Reads the value at the cursor and moves past it. Of two members with the same name the first counts.
    #[inline]
    pub fn read<'a, E>(
        &mut self,
        cursor: &mut JsonCursor<'a>,
        read: impl FnOnce(&mut JsonCursor<'a>) -> Result<T, E>,
    ) -> json::Result<()> {
        if self.is_there() {
            return cursor.skip_value();
        }
        let mut ahead = cursor.clone();
        match read(&mut ahead) {
            Ok(value) => {
                *self = Self::Read(value);
                *cursor = ahead;
                Ok(())
            }
            Err(_) => {
                *self = Self::Unread(cursor.position());
                cursor.skip_value()
            }
        }
    }

    pub fn is_there(&self) -> bool {
        !matches!(self, Self::Missing)
    }

    pub fn value(&self) -> Option<&T> {
        if let Self::Read(value) = self { Some(value) } else { None }
    }

    /// Returns the value, if the object has the member. `read` runs again for an error. `cursor` is one on the same text.
    #[inline]
    pub fn take<'a, E>(
        self,
        cursor: &JsonCursor<'a>,
        read: impl FnOnce(&mut JsonCursor<'a>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        match self {
            Self::Missing => Ok(None),
            Self::Read(value) => Ok(Some(value)),
            Self::Unread(at) => read(&mut cursor.at(at)).map(Some),
        }
    }

    /// Like [`take`](Self::take), with an error that names the member `field`.
    #[inline]
    pub fn take_field<'a, E: Into<DecodeError>>(
        self,
        cursor: &JsonCursor<'a>,
        field: &str,
        read: impl FnOnce(&mut JsonCursor<'a>) -> Result<T, E>,
    ) -> Result<Option<T>> {
        self.take(cursor, read).map_err(|error| error.into().in_field(field))
    }

    /// Like [`take_field`](Self::take_field), for a member that the object must have.
    #[inline]
    pub fn require<'a, E: Into<DecodeError>>(
        self,
        cursor: &JsonCursor<'a>,
        field: &'static str,
        read: impl FnOnce(&mut JsonCursor<'a>) -> Result<T, E>,
    ) -> Result<T> {
        self.take_field(cursor, field, read)?.ok_or(DecodeError::MissingField(field))
    }
}
