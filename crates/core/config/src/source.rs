//! The source of a configuration, and the places of mistakes found later.

use std::sync::Arc;

use galatea_types::{Error, Result};

use crate::{Diagnostic, FieldPath, Place, RawModelConfig, json, parse_json, parse_text, text};

/// The source of a configuration: the text of a file, JSON of a load request, or nothing.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The file as people know it, e.g. `m/config.pbtxt`.
    file: String,
    form: ConfigForm,
}

#[derive(Clone, Debug, Default)]
enum ConfigForm {
    /// The model has no configuration of its own.
    #[default]
    None,
    Text(Arc<str>),
    Json(Arc<str>),
}

impl ConfigSource {
    /// Makes a source from the text of a `config.pbtxt`. `file` is its name for people; clients may read it.
    pub fn text(file: impl Into<String>, source: impl Into<Arc<str>>) -> Self {
        Self { file: file.into(), form: ConfigForm::Text(source.into()) }
    }

    /// Makes a source from the JSON of a load request.
    pub fn json(source: impl Into<Arc<str>>) -> Self {
        Self { file: "config".to_owned(), form: ConfigForm::Json(source.into()) }
    }

    /// Returns whether the source contains `text`. Everybody who may read the configuration knows its content.
    pub fn says(&self, text: &str) -> bool {
        match &self.form {
            ConfigForm::None => false,
            ConfigForm::Text(source) | ConfigForm::Json(source) => source.contains(text),
        }
    }

    /// Parses the message; an empty source gives that of an empty text.
    ///
    /// # Errors
    /// The mistake in the text, with a [`Diagnostic`] as its source.
    pub fn parse(&self) -> Result<RawModelConfig> {
        match &self.form {
            ConfigForm::None => Ok(RawModelConfig::default()),
            ConfigForm::Json(source) => parse_json(source),
            ConfigForm::Text(source) => parse_text(source).map_err(|error| {
                let found = error.into_diagnostic(self.file.as_str(), source);
                found.into_error(galatea_types::Code::InvalidArg)
            }),
        }
    }

    /// Returns all mistakes in the text of a file that reading past a mistake can find. Empty when the text can be parsed.
    pub fn mistakes(&self) -> Vec<Diagnostic> {
        match &self.form {
            ConfigForm::None | ConfigForm::Json(_) => Vec::new(),
            ConfigForm::Text(source) => text::mistakes(source)
                .into_iter()
                .map(|mistake| mistake.into_diagnostic(self.file.as_str(), source))
                .collect(),
        }
    }

    /// Returns the place of a field, or of the closest part around it; else the file.
    pub fn place(&self, field: &FieldPath) -> Option<Place> {
        self.places()(field)
    }

    /// Returns a function that finds places. It reads the text once for several fields.
    fn places(&self) -> impl Fn(&FieldPath) -> Option<Place> + '_ {
        let file = self.file.as_str();
        let places = match &self.form {
            ConfigForm::Text(source) => text::find_places(source),
            ConfigForm::None | ConfigForm::Json(_) => None,
        };
        move |field| match &self.form {
            ConfigForm::None => None,
            ConfigForm::Json(source) => {
                let pointer = json::pointer(source, field);
                Some(Place::file(pointer.map_or(file.to_owned(), |p| format!("{file}#{p}"))))
            }
            ConfigForm::Text(source) => {
                Some(match places.as_ref().and_then(|places| places.find(field)) {
                    Some(position) => Place::in_text(file, source, position),
                    None => Place::file(file),
                })
            }
        }
    }

    /// Adds the place and the advice of its [`Diagnostic`] behind the text. An error with a place, or one that is not about the
    /// configuration, stays as it is.
    pub fn locate(&self, error: Error) -> Error {
        let Some(found) = Diagnostic::of(&error) else { return error };
        if found.place.is_some() {
            return error;
        }
        let found = self.locate_diagnostic(found.clone());
        Error::new(error.code(), format!("{error}{}", found.appendix())).with_source(found)
    }

    /// Adds the place to the finding.
    pub fn locate_diagnostic(&self, mut found: Diagnostic) -> Diagnostic {
        if found.place.is_none() {
            found.place = self.place(&found.field);
        }
        text::with_placeholder(found)
    }

    /// Adds the places to the findings.
    pub fn locate_all(&self, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let unplaced: Vec<_> = found.iter_mut().filter(|found| found.place.is_none()).collect();
        if !unplaced.is_empty() {
            let place = self.places();
            unplaced.into_iter().for_each(|found| found.place = place(&found.field));
        }
        found.into_iter().map(text::with_placeholder).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "input [\n  { name: \"a\" dims: [ 1, 0 ] },\n  { name: 'b' }\n]\n\
                        parameters { key: \"k\" value { string_value: \"v\" } }\nmax_batch_size: 4\n\
                        output { dims: 3 dims: 0 }\ndynamic_batching { }\n";

    #[track_caller]
    fn check(field: FieldPath, expected: &str) {
        let source = ConfigSource::text("m/config.pbtxt", TEXT);
        let place = source.place(&field).map(|place| place.to_string());
        assert_eq!(place.as_deref(), Some(expected), "{field}");
    }

    #[test]
    fn fields_are_found_with_their_places() {
        let input = || FieldPath::from("input");
        check("max_batch_size".into(), "m/config.pbtxt:6:17");
        check(input(), "m/config.pbtxt:1:1");
        check(input().index(0), "m/config.pbtxt:2:3");
        check(input().index(0).field("dims"), "m/config.pbtxt:2:15");
        check(input().index(0).field("dims").index(1), "m/config.pbtxt:2:26");
        check(input().index(1).field("dims"), "m/config.pbtxt:3:3");
        check(input().named("b").field("name"), "m/config.pbtxt:3:11");
        check(input().index(7).field("dims"), "m/config.pbtxt:1:1");
        let parameters = || FieldPath::from("parameters");
        check(parameters().named("k").field("value").field("string_value"), "m/config.pbtxt:5:45");
        check(parameters().named("other"), "m/config.pbtxt:5:1");
        check(FieldPath::from("output").index(0).field("dims").index(1), "m/config.pbtxt:7:24");
        check("dynamic_batching.preferred_batch_size".into(), "m/config.pbtxt:8:1");
        check("backend".into(), "m/config.pbtxt");
    }

    #[test]
    fn reading_continues_after_a_mistake() {
        let text = "name: \"m\"\nbakend: \"onnx\" 'runtime'\ninput [ { name: \"X\" data_type: FP32 dims: [ -1, x ] nmae { a: [ 1 ] } } ]\n\
                    max_batch_size: \"8\"\nmax_batch_size: 4\ndynamic_batching: true\nplatform: \"p\"\noutput { dims: 1 ";
        let source = ConfigSource::text("f", text);
        let found: Vec<String> = source
            .mistakes()
            .iter()
            .map(|m| format!("{}: {}", m.place.as_ref().expect("a place"), m.text))
            .collect();
        assert_eq!(
            found,
            [
                "f:2:1: no field `bakend` in ModelConfig",
                "f:3:32: `FP32` is not a value of DataType",
                "f:3:49: expected a 64-bit integer for `dims`, found `x`",
                "f:3:53: no field `nmae` in ModelInput",
                "f:4:17: expected a 32-bit integer for `max_batch_size`, found `\"8\"`",
                "f:6:19: expected `{` for `dynamic_batching`, found `true`",
                "f:8:18: expected `}`, found the end of the file",
            ]
        );
        let first = source.parse().expect_err("mistakes");
        assert_eq!(
            Diagnostic::of(&first).map(|first| &first.text),
            Some(&source.mistakes()[0].text)
        );
        assert!(ConfigSource::text("f", "name: \"m\"").mistakes().is_empty());
        assert_eq!(ConfigSource::text("f", "name: “m” x: 1").mistakes().len(), 1);
        assert_eq!(ConfigSource::text("f", "x: 1 ".repeat(1000)).mistakes().len(), 51);
    }

    #[test]
    fn a_byte_order_mark_counts_as_no_column() {
        let source = ConfigSource::text("f", "\u{feff}backend: \"x\"\r\nplatform: \"y\"\r\n");
        assert_eq!(
            source.place(&"backend".into()).map(|p| p.to_string()).as_deref(),
            Some("f:1:10")
        );
        let place = source.place(&"platform".into()).expect("a place");
        assert_eq!(
            (place.to_string().as_str(), place.line_text()),
            ("f:2:11", Some("platform: \"y\""))
        );
    }

    #[test]
    fn json_errors_have_pointers() {
        let source =
            ConfigSource::json(r#"{"input": [{"name": "a/b", "dims": [0]}], "maxBatchSize": 1}"#);
        let check = |field: FieldPath, expected: &str| {
            let place = source.place(&field).map(|place| place.to_string());
            assert_eq!(place.as_deref(), Some(expected), "{field}");
        };
        check(FieldPath::from("input").index(0).field("dims").index(0), "config#/input/0/dims/0");
        check(FieldPath::from("input").named("a/b").field("data_type"), "config#/input/0");
        check("max_batch_size".into(), "config#/maxBatchSize");
        check("backend".into(), "config");
    }

    #[test]
    fn an_error_gets_its_place_once() {
        let source = ConfigSource::text("m/config.pbtxt", TEXT);
        let found = Diagnostic::error("sentence").with_advice("do this").about("max_batch_size");
        let error = Error::unsupported("sentence").with_source(found);
        let located = source.locate(error);
        assert_eq!(located.message(), "sentence (m/config.pbtxt:6:17: do this)");
        assert_eq!(located.code(), galatea_types::Code::Unsupported);
        assert_eq!(source.locate(located.clone()).message(), located.message());
        assert_eq!(located.with_causes(), located.message());
        assert_eq!(source.locate(Error::internal("odd")).message(), "odd");
        let without = ConfigSource::default();
        let found = Diagnostic::error("sentence").with_advice("do this").about("backend");
        let error = without.locate(Error::invalid_arg("sentence").with_source(found));
        assert_eq!(error.message(), "sentence (do this)");
    }
}
