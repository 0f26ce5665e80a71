//! Readers of an option's value, with perf_analyzer's words for errors.

use std::{fs, path::PathBuf};

use galatea_command_line::Occurrence;

use super::error::OptionError;

type Result<T> = std::result::Result<T, OptionError>;

/// Returns the requirement of a number that must not be lower than `min`.
fn whole_number_from(min: i128) -> String {
    if min <= i128::from(i64::MIN) {
        return "a whole number".to_owned();
    }
    format!("a whole number >= {min}")
}

/// Makes the error of a value that does not meet a requirement.
pub fn failed(given: &Occurrence, requirement: impl Into<String>) -> OptionError {
    OptionError::Unmet { label: given.names.label(), requirement: requirement.into() }
}

/// Makes the error of a value that cannot be read.
pub fn invalid(given: &Occurrence, expected: impl Into<String>) -> OptionError {
    let (option, value) = (given.spelled(), given.text.clone());
    OptionError::Invalid { option, value, expected: expected.into() }
}

/// Makes the error of a word that is not one of those available.
pub fn unsupported(given: &Occurrence, available: &str) -> OptionError {
    failed(given, format!("Unsupported type provided: '{}'. {available}", given.text))
}

/// Reads a whole number not under `min`; otherwise the value must `requirement`.
pub fn at_least<T: TryFrom<i128>>(given: &Occurrence, min: i128, requirement: &str) -> Result<T> {
    let number = whole(&given.text).ok_or_else(|| invalid(given, whole_number_from(min)))?;
    if number < min {
        return Err(failed(given, format!("The value must {requirement}")));
    }
    T::try_from(number).map_err(|_| invalid(given, "a smaller number"))
}

/// Reads a finite number.
pub fn number(given: &Occurrence) -> Result<f64> {
    finite(&given.text).ok_or_else(|| invalid(given, "a number"))
}

/// Reads one of some words, in the case given.
pub fn choice<T: Copy>(given: &Occurrence, choices: &[(&str, T)], available: &str) -> Result<T> {
    choices
        .iter()
        .find(|(name, _)| *name == given.text)
        .map(|&(_, choice)| choice)
        .ok_or_else(|| unsupported(given, available))
}

/// Reads the name of a file that exists.
pub fn existing_file(given: &Occurrence, requirement: &str) -> Result<PathBuf> {
    let path = PathBuf::from(&given.text);
    if path.is_file() { Ok(path) } else { Err(failed(given, requirement)) }
}

/// Reads the name of a file that can be read.
pub fn readable_file(given: &Occurrence) -> Result<PathBuf> {
    let path = PathBuf::from(&given.text);
    let unreadable = |why: &str| failed(given, format!("Cannot read '{}': {why}", given.text));
    let kind = path.metadata().map_err(|error| unreadable(&error.to_string()))?;
    if kind.is_dir() {
        return Err(unreadable("it is a directory"));
    }
    // A pipe is not opened: that would take its data from the later reader.
    if kind.is_file() {
        fs::File::open(&path).map_err(|error| unreadable(&error.to_string()))?;
    }
    Ok(path)
}

/// Reads the name of a file to write.
pub fn file_name(given: &Occurrence) -> Result<PathBuf> {
    if given.text.is_empty() {
        return Err(invalid(given, "a file name"));
    }
    let path = PathBuf::from(&given.text);
    if path.is_dir() { Err(failed(given, "The value is a directory.")) } else { Ok(path) }
}

/// Reads a whole number from the whole text, without blanks around it.
pub fn whole(text: &str) -> Option<i128> {
    text.trim().parse().ok()
}

/// Reads a finite number from the whole text, without blanks around it.
pub fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
