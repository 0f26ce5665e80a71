//! Values into fields: what a type makes of the text of an option.

use std::path::PathBuf;

use crate::{error::BadValue, occurrence::Occurrence};

/// A field that can hold the value of an option.
pub trait Store {
    /// Takes the value over.
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue>;
}

impl Occurrence {
    /// Stores the value into a field: the usual closure of a table is `|o, v| v.put(&mut o.field)`.
    pub fn put<E: From<BadValue>>(&self, field: &mut impl Store) -> Result<(), E> {
        field.store(self).map_err(E::from)
    }
}

impl Store for bool {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        *self = occurrence.bool()?;
        Ok(())
    }
}

impl Store for f64 {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        *self = occurrence.number()?;
        Ok(())
    }
}

impl Store for String {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        self.clone_from(&occurrence.text);
        Ok(())
    }
}

impl Store for PathBuf {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        *self = Self::from(&occurrence.text);
        Ok(())
    }
}

/// An option that need not be given.
impl<T: Store + Default> Store for Option<T> {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        let mut value = T::default();
        value.store(occurrence)?;
        *self = Some(value);
        Ok(())
    }
}

/// An option that may be repeated.
impl<T: Store + Default> Store for Vec<T> {
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
        let mut value = T::default();
        value.store(occurrence)?;
        self.push(value);
        Ok(())
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Store for $type {
            fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue> {
                *self = occurrence.integer()?;
                Ok(())
            }
        }
    )*};
}

whole_numbers!(u16 u32 u64 usize i64);

/// The closure of an option that does one thing which cannot be put: `set!(|o, v| o.pause = seconds(v.integer()?))`.
#[macro_export]
macro_rules! set {
    (|$options:ident, $value:pat_param| $($work:tt)*) => {
        |$options, $value| {
            $($work)*;
            Ok(())
        }
    };
}
