//! Readings of an option's value that refuse it in perf_analyzer's words.

use std::{fs, path::PathBuf};

use galatea_command_line::Occurrence;

use super::error::OptionError;

type Result<T> = std::result::Result<T, OptionError>;

/// Readings of an option's value.
pub trait Reading {
    /// The error of a value that does not meet a requirement.
    fn failed(&self, requirement: impl Into<String>) -> OptionError;

    /// The error of a value that cannot be read.
    fn invalid(&self, expected: impl Into<String>) -> OptionError;

    /// The error of a word that is none of those available.
    fn unsupported(&self, available: &str) -> OptionError;

    /// A whole number not under `min`; otherwise the value must `requirement`.
    fn at_least<T: TryFrom<i128>>(&self, min: i128, requirement: &str) -> Result<T>;

    /// A number that is neither infinite nor none at all.
    fn finite(&self) -> Result<f64>;

    /// One of some words, in the case given.
    fn choice<T: Copy>(&self, choices: &[(&str, T)], available: &str) -> Result<T>;

    /// A file that is there.
    fn existing_file(&self, requirement: &str) -> Result<PathBuf>;

    /// A file that can be read.
    fn readable_file(&self) -> Result<PathBuf>;

    /// A file to be written.
    fn file_name(&self) -> Result<PathBuf>;
}

/// What is expected of a number that must not be lower than `min`.
fn whole_number_from(min: i128) -> String {
    if min <= i128::from(i64::MIN) {
        return "a whole number".to_owned();
    }
    format!("a whole number >= {min}")
}

impl Reading for Occurrence {
    fn failed(&self, requirement: impl Into<String>) -> OptionError {
        OptionError::Unmet { label: self.names.label(), requirement: requirement.into() }
    }

    fn invalid(&self, expected: impl Into<String>) -> OptionError {
        let (option, value) = (self.spelled(), self.text.clone());
        OptionError::Invalid { option, value, expected: expected.into() }
    }

    fn unsupported(&self, available: &str) -> OptionError {
        self.failed(format!("Unsupported type provided: '{}'. {available}", self.text))
    }

    fn at_least<T: TryFrom<i128>>(&self, min: i128, requirement: &str) -> Result<T> {
        let number = whole(&self.text).ok_or_else(|| self.invalid(whole_number_from(min)))?;
        if number < min {
            return Err(self.failed(format!("The value must {requirement}")));
        }
        T::try_from(number).map_err(|_| self.invalid("a smaller number"))
    }

    fn finite(&self) -> Result<f64> {
        finite(&self.text).ok_or_else(|| self.invalid("a number"))
    }

    fn choice<T: Copy>(&self, choices: &[(&str, T)], available: &str) -> Result<T> {
        choices
            .iter()
            .find(|(name, _)| *name == self.text)
            .map(|&(_, choice)| choice)
            .ok_or_else(|| self.unsupported(available))
    }

    fn existing_file(&self, requirement: &str) -> Result<PathBuf> {
        let path = PathBuf::from(&self.text);
        if path.is_file() { Ok(path) } else { Err(self.failed(requirement)) }
    }

    fn readable_file(&self) -> Result<PathBuf> {
        let path = PathBuf::from(&self.text);
        let unreadable = |why: &str| self.failed(format!("Cannot read '{}': {why}", self.text));
        let kind = path.metadata().map_err(|error| unreadable(&error.to_string()))?;
        if kind.is_dir() {
            return Err(unreadable("it is a directory"));
        }
        // Not a pipe: opening it here would take its data from the later reader.
        if kind.is_file() {
            fs::File::open(&path).map_err(|error| unreadable(&error.to_string()))?;
        }
        Ok(path)
    }

    fn file_name(&self) -> Result<PathBuf> {
        if self.text.is_empty() {
            return Err(self.invalid("a file name"));
        }
        let path = PathBuf::from(&self.text);
        if path.is_dir() { Err(self.failed("The value is a directory.")) } else { Ok(path) }
    }
}

/// The whole text, blanks around it aside.
pub fn whole(text: &str) -> Option<i128> {
    text.trim().parse().ok()
}

/// The same of numbers with a fraction.
pub fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
