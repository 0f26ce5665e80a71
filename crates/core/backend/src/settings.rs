//! Settings of a backend, as text by name.

use std::{collections::BTreeMap, str::FromStr};

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error, Result};

/// A backend's settings for a model, by name: the model's parameters first, then those of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    first: &'a BTreeMap<String, String>,
    second: Option<&'a BTreeMap<String, String>>,
    /// True if the first are the model's parameters, which have a place in its configuration.
    is_of_model: bool,
}

impl<'a> Settings<'a> {
    /// Returns the settings of the command line.
    pub fn of(settings: &'a BTreeMap<String, String>) -> Self {
        Self { first: settings, second: None, is_of_model: false }
    }

    /// Returns the parameters of a model.
    pub fn of_model(parameters: &'a BTreeMap<String, String>) -> Self {
        Self { first: parameters, second: None, is_of_model: true }
    }

    /// Returns these settings, with `others` for names that these do not have.
    pub fn or(self, others: &'a BTreeMap<String, String>) -> Self {
        Self { second: Some(others), ..self }
    }

    /// Returns a value without the space around it.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let second = || self.second.and_then(|settings| settings.get(key));
        self.first.get(key).or_else(second).map(|v| v.trim())
    }

    /// Returns a number. The text of the error is Triton's.
    pub fn number<N: FromStr>(&self, key: &str) -> Result<Option<N>> {
        let parse = |value: &str| value.parse().ok();
        self.read(key, parse, "integral number", "write a whole number")
    }

    /// Returns a flag: `true`, `false`, `1` or `0` in any case. The text of the error is Triton's.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        let parse = |value: &str| match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        self.read(key, parse, "boolean value", "write `true` or `false`")
    }

    fn read<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        wanted: &'static str,
        advice: &'static str,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || {
            let text = format!("failed to convert {key} '{value}' to {wanted}");
            if !self.is_of_model || !self.first.contains_key(key) {
                // Command line settings have no place in a configuration.
                return Error::invalid_arg(text);
            }
            let field = FieldPath::from("parameters").named(key).field("value");
            let found = Diagnostic::error(text).about(field.field("string_value"));
            found.with_advice(advice).into_unplaced_error(Code::InvalidArg)
        };
        parse(value).map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_counts_and_both_spellings_are_parsed() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let (model, line) =
            (of(&[("n", " 3 "), ("b", "TRUE"), ("x", "yes")]), of(&[("n", "4"), ("m", "5")]));
        let settings = Settings::of_model(&model).or(&line);
        assert_eq!(settings.number::<i32>("n").expect("number"), Some(3));
        assert_eq!(settings.number::<i32>("m").expect("number"), Some(5));
        assert_eq!(settings.boolean("b").expect("boolean"), Some(true));
        assert_eq!(settings.boolean("c").expect("none"), None);
        let error = settings.boolean("x").expect_err("neither");
        let found = Diagnostic::of(&error).expect("a diagnostic");
        assert_eq!(found.field.to_string(), r#"parameters["x"].value.string_value"#);
        assert_eq!(found.advice.as_deref(), Some("write `true` or `false`"));
        assert_eq!(error.message(), "failed to convert x 'yes' to boolean value");
        let error = settings.number::<i32>("b").expect_err("no number");
        assert_eq!(error.message(), "failed to convert b 'TRUE' to integral number");
    }
}
