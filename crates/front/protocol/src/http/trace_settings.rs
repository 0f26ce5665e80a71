//! The bodies of trace settings requests and of their answers.

use galatea_trace::{NumberField, SettingValue, SettingsChange, SettingsError};
use galatea_types::Protocol;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{
    decode_error::{DecodeError, Result},
    documents::to_json,
    json::{JsonCursor, Kind, for_each_member},
};

/// The settings that a body may name, in the order in which they are checked, whatever their order in the body.
const NAMES: [&str; 5] =
    ["trace_file", "trace_level", "trace_rate", "trace_count", "log_frequency"];

/// Reads the requested changes. As in Triton, other names are ignored, and so is a body that is no object.
///
/// # Errors
/// The body is no JSON, or a setting has no such value.
pub fn decode_trace_change(body: &[u8]) -> galatea_types::Result<SettingsChange> {
    Ok(decode(body)?)
}

fn decode(body: &[u8]) -> Result<SettingsChange> {
    JsonCursor::check_document(body)?;
    let mut change = SettingsChange::default();
    let mut cursor = JsonCursor::new(body);
    if cursor.kind() != Kind::Object {
        return Ok(change);
    }
    let mut values: [Option<usize>; NAMES.len()] = Default::default();
    for_each_member(&mut cursor, |key, cursor| {
        let value = NAMES.iter().zip(&mut values).find(|(name, _)| name.as_bytes() == key);
        if let Some((_, value)) = value {
            value.get_or_insert(cursor.position());
        }
        Ok::<_, DecodeError>(cursor.skip_value()?)
    })?;
    let [file, level, rate, count, log_frequency] =
        values.map(|at| at.map(|at| JsonCursor::new(body).at(at)));
    if file.is_some() {
        return Err(SettingsError::File.into());
    }
    if let Some(level) = level {
        set_levels(&mut change, level)?;
    }
    let numbers = [rate, count, log_frequency];
    for (field, value) in NumberField::ALL.into_iter().zip(numbers) {
        let Some(mut value) = value else { continue };
        match value.kind() {
            Kind::Null => change.clear(field),
            _ => change.set(field, &text(&mut value)?, Protocol::Http)?,
        }
    }
    Ok(change)
}

fn set_levels(change: &mut SettingsChange, mut value: JsonCursor<'_>) -> Result<()> {
    if value.kind() == Kind::Null {
        change.clear_levels();
        return Ok(());
    }
    value.expect_array()?;
    value.open();
    let (mut names, mut is_first) = (Vec::new(), true);
    while value.next_element(&mut is_first)? {
        names.push(text(&mut value)?);
    }
    Ok(change.set_levels(&names)?)
}

fn text(value: &mut JsonCursor<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(&value.expect_string()?).into_owned())
}

/// Returns the settings, in their order. A name may come several times.
pub fn trace_settings(settings: &[(String, SettingValue)]) -> Vec<u8> {
    struct Document<'a>(&'a [(String, SettingValue)]);
    impl Serialize for Document<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (name, value) in self.0 {
                match value {
                    SettingValue::One(text) => map.serialize_entry(name, text)?,
                    SettingValue::List(names) => map.serialize_entry(name, names)?,
                }
            }
            map.end()
        }
    }
    to_json(&Document(settings))
}

#[cfg(test)]
mod tests {
    use galatea_types::Code;

    use super::*;

    fn refused(body: &str) -> (Code, String) {
        let error = decode_trace_change(body.as_bytes()).expect_err(body);
        (error.code(), error.message().to_owned())
    }

    #[test]
    fn a_body_that_is_no_object_changes_nothing() {
        for body in ["{}", "[]", "\"x\"", "5", r#"{"trace_mode":1,"url":[],"x":{}}"#] {
            let change = decode_trace_change(body.as_bytes());
            assert_eq!(change.expect(body), SettingsChange::default(), "{body}");
        }
        for body in ["", "{", "{x}"] {
            let (code, text) = refused(body);
            assert_eq!(code, Code::Internal, "{body}");
            assert!(text.starts_with("failed to parse the request JSON buffer: "), "{text}");
        }
    }

    #[test]
    fn the_file_is_refused_before_all_else() {
        for body in [r#"{"trace_level":"x","trace_file":null}"#, r#"{"trace_file":"a"}"#] {
            let (code, text) = refused(body);
            assert_eq!(code, Code::Unsupported);
            assert_eq!(text, "trace file location can not be updated through network protocol");
        }
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused_in_the_order_of_the_settings() {
        let array = "attempt to access JSON non-array as array";
        let string = "attempt to access JSON non-string as string";
        for (body, text) in [
            (r#"{"trace_level":"TIMESTAMPS"}"#, array),
            (r#"{"trace_level":[1]}"#, string),
            (r#"{"trace_count":1,"trace_level":{}}"#, array),
            (r#"{"log_frequency":5}"#, string),
        ] {
            assert_eq!(refused(body), (Code::Internal, text.to_owned()), "{body}");
        }
        let (code, text) = refused(r#"{"trace_count":1,"trace_rate":"abc"}"#);
        assert_eq!((code, &*text), (Code::InvalidArg, "Unable to parse 'trace_rate', got: abc"));
    }

    #[test]
    fn null_clears_and_the_first_of_two_counts() {
        let read = |body: &str| decode_trace_change(body.as_bytes()).expect(body);
        let mut wanted = SettingsChange::default();
        wanted.clear_levels();
        wanted.clear(NumberField::Count);
        wanted.set(NumberField::Rate, "3", Protocol::Http).expect("a number");
        let body = r#"{"trace_level":null,"trace_count":null,"trace_rate":"3","trace_rate":"4"}"#;
        assert_eq!(read(body), wanted);
    }

    #[test]
    fn the_answer_keeps_the_order() {
        let settings = [
            ("trace_level".to_owned(), SettingValue::List(vec!["TIMESTAMPS", "TENSORS"])),
            ("x".to_owned(), SettingValue::One("1\"".to_owned())),
            ("x".to_owned(), SettingValue::One("2".to_owned())),
        ];
        let text = String::from_utf8(trace_settings(&settings)).expect("UTF-8");
        assert_eq!(text, r#"{"trace_level":["TIMESTAMPS","TENSORS"],"x":"1\"","x":"2"}"#);
    }
}
