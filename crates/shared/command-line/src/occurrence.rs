//! An option on a command line, and functions that read its value.

use crate::{
    error::{BadValue, ValueError},
    kind::{self, Kind},
    names::Names,
};

/// An option on a command line.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// The names of the option.
    pub names: &'static Names,
    /// The kind of its values.
    pub kind: Kind,
    /// It was typed as a letter.
    pub is_short: bool,
    /// Its value as typed; empty for options without values.
    pub text: String,
}

impl Occurrence {
    /// Returns the name as used: `-p` or `--measurement-interval`, whatever abbreviation was typed.
    pub fn spelled(&self) -> String {
        match self.names.short {
            Some(short) if self.is_short => format!("-{short}"),
            _ => self.names.plain(),
        }
    }

    /// Reads yes or no; a switch that is given means yes.
    pub fn bool(&self) -> Result<bool, BadValue> {
        match self.kind {
            Kind::Switch => Ok(true),
            Kind::OptionalBool if self.text.is_empty() => Ok(true),
            _ => kind::bool_of(&self.text).map_err(|reason| self.bad(reason)),
        }
    }

    /// Reads a whole number within the row's bounds and those of the type.
    pub fn integer<T: TryFrom<i64>>(&self) -> Result<T, BadValue> {
        let (min, max) = match self.kind {
            Kind::Integer { min, max } => (min, max),
            _ => (i64::MIN, i64::MAX),
        };
        let number = kind::integer_of(&self.text, min, max).map_err(|reason| self.bad(reason))?;
        let too_large = |_| self.bad(ValueError::TooLarge(self.text.clone()));
        T::try_from(number).map_err(too_large)
    }

    /// Reads a whole number; a smaller one becomes `least`.
    pub fn raised_to<T: TryFrom<i64> + Ord>(&self, least: T) -> Result<T, BadValue> {
        let number: i64 = self.integer()?;
        // A number below zero does not fit the type, and is below `least` too.
        Ok(T::try_from(number.max(0))
            .map_err(|_| self.bad(ValueError::TooLarge(self.text.clone())))?
            .max(least))
    }

    /// Reads a finite number that is not negative.
    pub fn number(&self) -> Result<f64, BadValue> {
        kind::number_of(&self.text).map_err(|reason| self.bad(reason))
    }

    /// Returns whether the value is that word, in any case.
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// Makes the error of a value that this option cannot have.
    pub fn bad(&self, reason: ValueError) -> BadValue {
        BadValue { option: self.names.plain(), reason }
    }

    /// Makes the error of a value without the expected form.
    pub fn malformed(&self, form: &'static str) -> BadValue {
        let (option, got) = (self.names.plain(), self.text.clone());
        self.bad(ValueError::Malformed { option, form, got })
    }
}
