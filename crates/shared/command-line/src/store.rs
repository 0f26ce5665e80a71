//! Stores option values in fields; each type reads the text in its own way.

use std::path::PathBuf;

use crate::{error::BadValue, occurrence::Occurrence};

/// A field that can hold the value of an option.
pub trait Store {
    /// Stores the value in the field.
    fn store(&mut self, occurrence: &Occurrence) -> Result<(), BadValue>;
}

impl Occurrence {
    /// Stores the value in a field: the usual closure of a table is `|o, v| v.put(&mut o.field)`.
    pub fn put<E: From<BadValue>>(&self, field: &mut impl Store) -> Result<(), E> {
        field.store(self).map_err(E::from)
    }
}

/// An option that may be left out.
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

macro_rules! stores {
    ($($type:ty: |$occurrence:ident| $value:expr;)*) => {$(
        impl Store for $type {
            fn store(&mut self, $occurrence: &Occurrence) -> Result<(), BadValue> {
                *self = $value;
                Ok(())
            }
        }
    )*};
}

stores! {
    bool: |given| given.bool()?;
    f64: |given| given.number()?;
    String: |given| given.text.clone();
    PathBuf: |given| Self::from(&given.text);
    u16: |given| given.integer()?;
    u32: |given| given.integer()?;
    u64: |given| given.integer()?;
    usize: |given| given.integer()?;
    i64: |given| given.integer()?;
}

/// Makes the closure of an option that `put` cannot store: `set!(|o, v| o.pause = seconds(v.integer()?))`.
#[macro_export]
macro_rules! set {
    (|$options:ident, $value:pat_param| $($work:tt)*) => {
        |$options, $value| {
            $($work)*;
            Ok(())
        }
    };
}
