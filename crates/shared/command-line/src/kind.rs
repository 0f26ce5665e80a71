//! The kinds of values of options.

use crate::error::ValueError;

/// The kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// No value.
    Switch,
    /// No value, or yes or no, also as the next word.
    OptionalBool,
    /// No value, or text behind `=`; never the next word. The help shows this name for the text.
    OptionalText(&'static str),
    /// Yes or no: `true`, `on`, `1`, `false`, `off`, `0`, in any case.
    Bool,
    /// A whole number.
    Integer {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A number that is not negative.
    Number,
    /// Any text, even an empty one.
    Text,
    /// Text that may not be empty.
    Name,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// Text of the form that the help shows; the closure of the option checks it.
    Form(&'static str),
}

/// Reads yes or no.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

impl Kind {
    /// Returns whether a value must follow.
    pub fn needs_value(self) -> bool {
        !matches!(self, Self::Switch | Self::OptionalBool | Self::OptionalText(_))
    }

    /// Returns the text that the help shows behind the names.
    pub(crate) fn placeholder(self) -> String {
        let name = match self {
            Self::Switch => return String::new(),
            Self::OptionalBool => return " [true|false]".to_owned(),
            Self::OptionalText(name) => return format!("[=<{name}>]"),
            Self::Bool => "boolean",
            Self::Integer { .. } => "integer",
            Self::Number => "float",
            Self::Text | Self::Name | Self::Choice(_) => "string",
            Self::Form(form) => form,
        };
        format!(" <{name}>")
    }

    /// Checks that `text` is a value of this kind for `option` (with its dashes).
    pub fn check(self, option: &str, text: &str) -> Result<(), ValueError> {
        match self {
            Self::Name if text.is_empty() => Err(ValueError::Empty(option.to_owned())),
            Self::Bool => bool_of(text).map(drop),
            Self::OptionalBool if !text.is_empty() => bool_of(text).map(drop),
            Self::Integer { min, max } => integer_of(text, min, max).map(drop),
            Self::Number => number_of(text).map(drop),
            Self::Choice(choices) if !choices.iter().any(|c| c.eq_ignore_ascii_case(text)) => {
                let (option, got) = (option.to_owned(), text.to_owned());
                Err(ValueError::NotAChoice { option, got, choices })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether both values mean the same, e.g. `False` and `0`.
    pub fn is_same(self, a: &str, b: &str) -> bool {
        match self {
            Self::Bool | Self::OptionalBool => parse_bool(a) == parse_bool(b),
            Self::Integer { .. } => a.parse::<i64>().ok() == b.parse::<i64>().ok(),
            Self::Number => a.parse::<f64>().ok() == b.parse::<f64>().ok(),
            Self::Choice(_) => a.eq_ignore_ascii_case(b),
            Self::Switch | Self::OptionalText(_) | Self::Text | Self::Name | Self::Form(_) => {
                a == b
            }
        }
    }
}

pub(crate) fn bool_of(text: &str) -> Result<bool, ValueError> {
    parse_bool(text).ok_or_else(|| ValueError::NotBool(text.to_owned()))
}

pub(crate) fn number_of(text: &str) -> Result<f64, ValueError> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| ValueError::NotANumber(text.to_owned()))
}

/// Reads the whole text, so that a typing error like `80O0` does not become port 80.
pub(crate) fn integer_of(text: &str, min: i64, max: i64) -> Result<i64, ValueError> {
    let got = text.to_owned();
    match text.parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) => Err(ValueError::OutOfBounds { got, min, max }),
        Err(_) if is_whole_number(text) => Err(ValueError::TooLarge(got)),
        Err(_) => Err(ValueError::NotANumber(got)),
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_parsed_as_a_whole() {
        let error = |text: &str| integer_of(text, 0, 9).map_err(|error| error.to_string());
        assert_eq!(error("7"), Ok(7));
        for text in ["abc", "", "7x", " 1", "1.0"] {
            assert_eq!(
                error(text),
                Err(format!("Invalid option value. Got {text}, expected a number"))
            );
        }
        for text in ["-5", "10"] {
            let bounds = "Provided option value is out of bound.";
            assert_eq!(error(text), Err(format!("{bounds} Got {text}, expected 0 to 9")));
        }
        let long = "99999999999999999999";
        assert_eq!(integer_of(long, 0, 9), Err(ValueError::TooLarge(long.to_owned())));
    }

    #[test]
    fn kinds_are_described_in_words() {
        assert!(Kind::Bool.is_same("False", "0"));
        assert!(Kind::Number.is_same("6", "6.0"));
        assert!(Kind::Choice(&["off"]).is_same("OFF", "off"));
        assert!(!Kind::Text.is_same("OFF", "off"));
        assert!(!Kind::Integer { min: 0, max: 9 }.is_same("1", "2"));
    }

    #[test]
    fn invalid_values_are_named() {
        assert_eq!(Kind::Name.check("--a", ""), Err(ValueError::Empty("--a".to_owned())));
        assert!(Kind::Bool.check("--a", "maybe").is_err());
        assert!(Kind::OptionalBool.check("--a", "").is_ok());
        assert!(Kind::OptionalBool.check("--a", "maybe").is_err());
        assert!(
            Kind::Number.check("--a", "-1").is_err() && Kind::Number.check("--a", "inf").is_err()
        );
        let error = Kind::Choice(&["x", "y"]).check("--a", "z").map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("invalid argument for --a: got 'z', expected one of x, y".to_owned())
        );
    }
}
