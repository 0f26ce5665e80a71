//! Settings of a backend, by name and as text.

use std::{collections::BTreeMap, str::FromStr};

use galatea_types::{Error, Result};

/// A backend's settings for a model by name: the model's parameters, then the command line.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    first: &'a BTreeMap<String, String>,
    second: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Settings<'a> {
    /// These alone.
    pub fn of(settings: &'a BTreeMap<String, String>) -> Self {
        Self { first: settings, second: None }
    }

    /// These, and `others` for what is not among these.
    pub fn or(self, others: &'a BTreeMap<String, String>) -> Self {
        Self { second: Some(others), ..self }
    }

    /// Without the space around it.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let second = || self.second.and_then(|settings| settings.get(key));
        self.first.get(key).or_else(second).map(|v| v.trim())
    }

    /// Text of the error as in Triton.
    pub fn number<N: FromStr>(&self, key: &str) -> Result<Option<N>> {
        let parse = |v: &str| v.parse().map_err(|_| SettingError::new(key, v, "integral number"));
        Ok(self.get(key).map(parse).transpose()?)
    }

    /// `true`, `false`, `1` or `0` in any case. Text of the error as in Triton.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        let parse = |v: &str| match v.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(SettingError::new(key, v, "boolean value")),
        };
        Ok(self.get(key).map(parse).transpose()?)
    }
}

/// A setting that is not what it has to be.
#[derive(Debug, thiserror::Error)]
#[error("failed to convert {key} '{value}' to {wanted}")]
struct SettingError {
    key: String,
    value: String,
    wanted: &'static str,
}

impl SettingError {
    fn new(key: &str, value: &str, wanted: &'static str) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), wanted }
    }
}

impl From<SettingError> for Error {
    fn from(error: SettingError) -> Self {
        Error::invalid_arg(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_decides_and_both_are_parsed_leniently() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let (model, line) =
            (of(&[("n", " 3 "), ("b", "TRUE"), ("x", "yes")]), of(&[("n", "4"), ("m", "5")]));
        let settings = Settings::of(&model).or(&line);
        assert_eq!(settings.number::<i32>("n").expect("number"), Some(3));
        assert_eq!(settings.number::<i32>("m").expect("number"), Some(5));
        assert_eq!(settings.boolean("b").expect("boolean"), Some(true));
        assert_eq!(settings.boolean("c").expect("none"), None);
        let error = settings.boolean("x").expect_err("neither");
        assert_eq!(error.message(), "failed to convert x 'yes' to boolean value");
        let error = settings.number::<i32>("b").expect_err("no number");
        assert_eq!(error.message(), "failed to convert b 'TRUE' to integral number");
    }
}
