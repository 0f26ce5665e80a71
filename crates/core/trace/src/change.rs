//! A change of the settings that a client asks for, with the texts of Triton's refusals.

use galatea_types::{Error, Protocol};

use crate::{
    level::Levels,
    number::{self, BadNumber},
};

/// A setting that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberField {
    /// Every how manyth request is traced.
    Rate,
    /// The number of requests that are still traced.
    Count,
    /// Traces in a file.
    LogFrequency,
}

impl NumberField {
    /// All of them, in the order in which a change is checked.
    pub const ALL: [Self; 3] = [Self::Rate, Self::Count, Self::LogFrequency];

    /// Returns the name of the setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "trace_rate",
            Self::Count => "trace_count",
            Self::LogFrequency => "log_frequency",
        }
    }

    /// Returns the bounds that Triton's refusal names. Triton's own bound of the upper one is half as large.
    fn bounds(self) -> &'static str {
        match self {
            Self::Count => "[ -1, 2147483647 ]",
            Self::Rate | Self::LogFrequency => "[ 0, 4294967295 ]",
        }
    }
}

/// The refusal of a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The file is chosen at start.
    #[error("trace file location can not be updated through network protocol")]
    File,
    /// `OFF` beside another level.
    #[error("Expect only one trace level 'OFF' is specified")]
    OffAmongLevels,
    /// A text that does not begin with a number.
    #[error("Unable to parse '{}', got: {text}", .field.name())]
    NotANumber {
        /// The setting.
        field: NumberField,
        /// The text.
        text: String,
    },
    /// A number that the setting cannot have.
    #[error("Unable to parse '{}', value is out of range {}, got: {text}", .field.name(), .field.bounds())]
    OutOfRange {
        /// The setting.
        field: NumberField,
        /// The text.
        text: String,
    },
    /// A count below -1, which means no limit.
    #[error("Unable to parse 'trace_count'. Expecting value >= -1, got:{blank}{count}")]
    NegativeCount {
        /// A blank for clients of gRPC.
        blank: &'static str,
        /// The count.
        count: i32,
    },
    /// Several values over gRPC.
    #[error("expect only 1 value for '{0}'")]
    SeveralValues(&'static str),
    /// The settings do not fit each other.
    #[error("Attempting to set invalid trace setting :{0}")]
    Invalid(InvalidSettings),
}

/// The reason why settings do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// No request would be traced.
    #[error("sample rate must be non-zero")]
    NoRate,
    /// There is no file for the traces.
    #[error("trace file name is not given")]
    NoFile,
    /// The change itself sets the count to zero.
    #[error("trace count must be non-zero")]
    NoCount,
    /// The change turns tracing on, but no request is left to trace.
    #[error("trace count is used up, set 'trace_count' too")]
    CountUsedUp,
}

/// Returns the refusal of a request for the settings of a model that is not served.
pub fn unknown_model(name: &str) -> Error {
    Error::invalid_arg(format!("Request for unknown model : {name}"))
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        let new = match error {
            SettingsError::File => Error::unsupported,
            _ => Error::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

/// The new value of a setting, or the wish to have none of its own any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewValue<T> {
    Clear,
    Value(T),
}

impl<T: Copy> NewValue<T> {
    /// Applies a wish to the own value of a setting.
    pub fn apply(wish: Option<Self>, own: Option<T>) -> Option<T> {
        match wish {
            None => own,
            Some(Self::Clear) => None,
            Some(Self::Value(value)) => Some(value),
        }
    }
}

/// A checked change. Settings that it does not name stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    pub(crate) levels: Option<NewValue<Levels>>,
    pub(crate) rate: Option<NewValue<u32>>,
    pub(crate) count: Option<NewValue<i32>>,
    pub(crate) log_frequency: Option<NewValue<u32>>,
}

impl SettingsChange {
    /// Clears the levels: those of the server, or those of the start, count again.
    pub fn clear_levels(&mut self) {
        self.levels = Some(NewValue::Clear);
    }

    /// Sets the levels of these names. As in Triton, unknown names count for nothing, and so does a list without a known one.
    ///
    /// # Errors
    /// `OFF` is one of several.
    pub fn set_levels<T: AsRef<str>>(&mut self, names: &[T]) -> Result<(), SettingsError> {
        let mut levels = Levels::OFF;
        let mut is_given = false;
        for name in names {
            match name.as_ref() {
                "OFF" if names.len() > 1 => return Err(SettingsError::OffAmongLevels),
                "OFF" => is_given = true,
                name => is_given |= levels.add(name),
            }
        }
        if is_given {
            self.levels = Some(NewValue::Value(levels));
        }
        Ok(())
    }

    /// Clears a number: that of the server, or that of the start, counts again.
    pub fn clear(&mut self, field: NumberField) {
        match field {
            NumberField::Rate => self.rate = Some(NewValue::Clear),
            NumberField::Count => self.count = Some(NewValue::Clear),
            NumberField::LogFrequency => self.log_frequency = Some(NewValue::Clear),
        }
    }

    /// Sets a number from the text of a client that speaks `protocol`.
    ///
    /// # Errors
    /// The text is no number that the setting can have.
    pub fn set(
        &mut self,
        field: NumberField,
        text: &str,
        protocol: Protocol,
    ) -> Result<(), SettingsError> {
        let out_of_range = || SettingsError::OutOfRange { field, text: text.to_owned() };
        let number = number::read(text).map_err(|bad| match bad {
            BadNumber::NotANumber => SettingsError::NotANumber { field, text: text.to_owned() },
            BadNumber::OutOfRange => out_of_range(),
        })?;
        let unsigned = || u32::try_from(number).map_err(|_| out_of_range());
        match field {
            NumberField::Rate => self.rate = Some(NewValue::Value(unsigned()?)),
            NumberField::LogFrequency => self.log_frequency = Some(NewValue::Value(unsigned()?)),
            NumberField::Count if number < -1 => {
                let blank = if protocol == Protocol::Grpc { " " } else { "" };
                return Err(SettingsError::NegativeCount { blank, count: number });
            }
            NumberField::Count => self.count = Some(NewValue::Value(number)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(names: &[&str]) -> Result<Option<Levels>, SettingsError> {
        let mut change = SettingsChange::default();
        change.set_levels(names)?;
        Ok(change.levels.and_then(|given| NewValue::apply(Some(given), None)))
    }

    #[test]
    fn unknown_levels_count_for_nothing_and_off_stands_alone() {
        let both = Levels { timestamps: true, tensors: true };
        assert_eq!(levels(&["TENSORS", "MIN", "TIMESTAMPS"]), Ok(Some(both)));
        assert_eq!(levels(&["OFF"]), Ok(Some(Levels::OFF)));
        for names in [&[][..], &["MIN"], &["timestamps"], &["foo", "MAX"]] {
            assert_eq!(levels(names), Ok(None), "{names:?}");
        }
        for names in [["OFF", "TIMESTAMPS"], ["TIMESTAMPS", "OFF"], ["OFF", "OFF"]] {
            assert_eq!(levels(&names), Err(SettingsError::OffAmongLevels), "{names:?}");
        }
    }

    #[test]
    fn numbers_have_the_texts_of_triton() {
        use NumberField::{Count, LogFrequency, Rate};
        let refused = |field, text, protocol| {
            let error = SettingsChange::default().set(field, text, protocol).expect_err(text);
            error.to_string()
        };
        let http = Protocol::Http;
        assert_eq!(refused(Rate, "abc", http), "Unable to parse 'trace_rate', got: abc");
        assert_eq!(refused(LogFrequency, "", http), "Unable to parse 'log_frequency', got: ");
        assert_eq!(
            refused(Rate, "2147483648", http),
            "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 2147483648"
        );
        assert_eq!(
            refused(Count, "2147483648", http),
            "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 2147483648"
        );
        let negative = "Unable to parse 'trace_count'. Expecting value >= -1, got:";
        assert_eq!(refused(Count, "-2", http), format!("{negative}-2"));
        assert_eq!(refused(Count, "-2", Protocol::Grpc), format!("{negative} -2"));
        assert!(refused(Rate, "-1", http).ends_with("[ 0, 4294967295 ], got: -1"));
    }
}
