//! An option as it stands on the command line, and readings of its value.

use std::{fs, path::PathBuf};

use super::spec::Spec;

pub struct Occurrence {
    pub spec: &'static Spec,
    pub is_short: bool,
    /// Empty for options that take nothing.
    pub text: String,
}

impl Occurrence {
    /// The name as used: `-p` or `--measurement-interval`, whatever abbreviation was typed.
    pub fn spelled(&self) -> String {
        match self.spec.short {
            Some(short) if self.is_short => format!("-{short}"),
            _ => format!("--{}", self.spec.long),
        }
    }

    pub fn failed(&self, why: &str) -> String {
        format!("Failed to parse {}. {why}", self.spec.label())
    }

    pub fn invalid(&self, expected: &str) -> String {
        format!(
            "Failed to parse {}. Invalid value provided: {} (expected {expected})",
            self.spelled(),
            self.text
        )
    }

    pub fn unsupported(&self, available: &str) -> String {
        self.failed(&format!("Unsupported type provided: '{}'. {available}", self.text))
    }

    /// A whole number not under `min`; otherwise the value must `requirement`.
    pub fn at_least<T: TryFrom<i128>>(&self, min: i128, requirement: &str) -> Result<T, String> {
        let number =
            whole(&self.text).ok_or_else(|| self.invalid(&format!("a whole number >= {min}")))?;
        if number < min {
            return Err(self.failed(&format!("The value must {requirement}")));
        }
        T::try_from(number).map_err(|_| self.invalid("a smaller number"))
    }

    pub fn number(&self) -> Result<f64, String> {
        finite(&self.text).ok_or_else(|| self.invalid("a number"))
    }

    pub fn choice<T: Copy>(&self, choices: &[(&str, T)], available: &str) -> Result<T, String> {
        choices
            .iter()
            .find(|(name, _)| *name == self.text)
            .map(|&(_, choice)| choice)
            .ok_or_else(|| self.unsupported(available))
    }

    pub fn existing_file(&self, requirement: &str) -> Result<PathBuf, String> {
        let path = PathBuf::from(&self.text);
        if path.is_file() { Ok(path) } else { Err(self.failed(requirement)) }
    }

    pub fn readable_file(&self) -> Result<PathBuf, String> {
        let path = PathBuf::from(&self.text);
        let unreadable = |why: &str| self.failed(&format!("Cannot read '{}': {why}", self.text));
        let kind = path.metadata().map_err(|error| unreadable(&error.to_string()))?;
        if kind.is_dir() {
            return Err(unreadable("it is a directory"));
        }
        // Not a pipe: opening it takes it from whoever reads it later.
        if kind.is_file() {
            fs::File::open(&path).map_err(|error| unreadable(&error.to_string()))?;
        }
        Ok(path)
    }

    /// A file to be written.
    pub fn file_name(&self) -> Result<PathBuf, String> {
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

pub fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}
