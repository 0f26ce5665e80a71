//! The elements of number and boolean tensors in JSON, by type.

use super::{
    json::{JsonCursor, Result},
    json_error::JsonError,
    plain_number::{PlainNumber, WINDOW},
};

/// The fault of an element. It is small, because every element has a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum ElementError {
    Json(JsonError),
    OutOfRange,
}

impl From<JsonError> for ElementError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// An element with `N` bytes in its tensor.
pub(super) trait Element<const N: usize>: Sized {
    /// Reads the value at the cursor.
    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ElementError>;

    /// Returns the value at the beginning of `text` and its length in characters, if it has the usual form.
    /// [`read`](Self::read) accepts the same values.
    fn plain(text: &[u8; WINDOW]) -> Option<(Self, usize)>;

    /// Returns the bytes of the element in the tensor.
    fn bytes(self) -> [u8; N];
}

macro_rules! integers {
    ($expect:ident, $wide:ident: $($type:ty)*) => { $(
        impl Element<{ size_of::<$type>() }> for $type {
            /// Fails for a value out of range, whose low bits Triton keeps silently: a wrong number is worse than an error.
            fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ElementError> {
                Self::try_from(cursor.$expect()?).map_err(|_| ElementError::OutOfRange)
            }

            #[inline]
            fn plain(text: &[u8; WINDOW]) -> Option<(Self, usize)> {
                let number = PlainNumber::integer(text)?;
                Some((Self::try_from(number.$wide()?).ok()?, number.length))
            }

            #[inline]
            fn bytes(self) -> [u8; size_of::<$type>()] {
                self.to_le_bytes()
            }
        }
    )* };
}

integers!(expect_u64, as_u64: u8 u16 u32 u64);
integers!(expect_i64, as_i64: i8 i16 i32 i64);

impl Element<4> for f32 {
    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ElementError> {
        Ok(cursor.expect_f64()? as f32)
    }

    #[inline]
    fn plain(text: &[u8; WINDOW]) -> Option<(Self, usize)> {
        let number = PlainNumber::real(text)?;
        Some((number.as_f32()?, number.length))
    }

    #[inline]
    fn bytes(self) -> [u8; 4] {
        self.to_le_bytes()
    }
}

impl Element<8> for f64 {
    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ElementError> {
        Ok(cursor.expect_f64()?)
    }

    #[inline]
    fn plain(text: &[u8; WINDOW]) -> Option<(Self, usize)> {
        let number = PlainNumber::real(text)?;
        Some((number.as_f64()?, number.length))
    }

    #[inline]
    fn bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

impl Element<1> for bool {
    fn read(cursor: &mut JsonCursor<'_>) -> Result<Self, ElementError> {
        Ok(cursor.expect_bool()?)
    }

    #[inline]
    fn plain(text: &[u8; WINDOW]) -> Option<(Self, usize)> {
        let is_true = text.starts_with(b"true");
        (is_true || text.starts_with(b"false")).then_some((is_true, if is_true { 4 } else { 5 }))
    }

    #[inline]
    fn bytes(self) -> [u8; 1] {
        [u8::from(self)]
    }
}
