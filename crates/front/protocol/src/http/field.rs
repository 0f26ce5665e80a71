//! Members of a JSON object. In the text they come in any order; of several mistakes the one is reported that Triton,
//! which looks them up in its own order, finds first.

use super::{
    decode_error::{DecodeError, Result},
    json::{self, JsonCursor},
};

/// A member of an object, read where it stands, so that the text is walked through once. What cannot be read is stepped
/// over, and read again when its turn comes, for its error.
#[derive(Debug, Default)]
pub(super) enum Member<T> {
    /// The object does not have it.
    #[default]
    Missing,
    /// Its value.
    Read(T),
    /// Where its value starts.
    Unread(usize),
}

impl<T> Member<T> {
    /// Reads the value the cursor stands on and steps over it. Of two members of one name the first counts.
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

    /// The value, if the object has the member; `read` again for its error. `cursor` is one on the same text.
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

    /// [`take`](Self::take) with an error that names the member `field`.
    #[inline]
    pub fn take_field<'a, E: Into<DecodeError>>(
        self,
        cursor: &JsonCursor<'a>,
        field: &str,
        read: impl FnOnce(&mut JsonCursor<'a>) -> Result<T, E>,
    ) -> Result<Option<T>> {
        self.take(cursor, read).map_err(|error| error.into().in_field(field))
    }

    /// [`take_field`](Self::take_field) of a member that the object must have.
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
