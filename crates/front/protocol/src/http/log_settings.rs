//! The bodies of log settings requests and of their answers.

use galatea_telemetry::logger::{LogChange, LogFormat, LogSettings};
use serde::Serialize;

use super::{
    decode_error::{DecodeError, Result},
    documents::to_json,
    json::{JsonCursor, Kind},
    repository::{for_each_member_of, refuse_non_object},
};

/// The settings that a body may name, in the order in which they are checked, whatever their order in the body.
const NAMES: [&str; 6] =
    ["log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"];

/// The most verbose level. A greater number means this one.
const MAX_LEVEL: u64 = i32::MAX as u64;

/// Reads the requested changes. As in Triton, `change` has those before the first mistake, which must be made even if
/// this fails. Values that are `null` and other names are ignored.
pub fn decode_log_change(body: &[u8], change: &mut LogChange) -> galatea_types::Result<()> {
    Ok(decode(body, change)?)
}

fn decode(body: &[u8], change: &mut LogChange) -> Result<()> {
    refuse_non_object(body)?;
    if body.is_empty() {
        JsonCursor::check_document(body)?;
    }
    let mut values: [Option<usize>; NAMES.len()] = Default::default();
    for_each_member_of(body, |key, cursor| {
        let value = NAMES.iter().zip(&mut values).find(|(name, _)| name.as_bytes() == key);
        if let Some((_, value)) = value {
            value.get_or_insert(cursor.position());
        }
        Ok(cursor.skip_value()?)
    })?;
    let given = |at: Option<usize>| {
        let mut cursor = JsonCursor::new(body).at(at?);
        (cursor.kind() != Kind::Null).then_some(cursor)
    };
    let [file, info, warning, error, verbose_level, format] = values.map(given);
    if file.is_some() {
        return Err(DecodeError::LogFile);
    }
    let boolean = |value: Option<JsonCursor<'_>>| value.map(|mut v| v.expect_bool()).transpose();
    change.has_info = boolean(info)?;
    change.has_warning = boolean(warning)?;
    change.has_error = boolean(error)?;
    change.verbose_level = verbose_level.map(level).transpose()?;
    change.format = format.map(format_named).transpose()?;
    Ok(())
}

fn level(mut value: JsonCursor<'_>) -> Result<u32> {
    Ok(value.expect_u64()?.min(MAX_LEVEL) as u32)
}

fn format_named(mut value: JsonCursor<'_>) -> Result<LogFormat> {
    let name = String::from_utf8_lossy(&value.expect_string()?).into_owned();
    LogFormat::named(&name).ok_or(DecodeError::LogFormat(name))
}

/// Returns the current settings.
pub fn log_settings(settings: &LogSettings) -> Vec<u8> {
    #[derive(Serialize)]
    struct Document<'a> {
        log_file: &'a str,
        log_info: bool,
        log_warning: bool,
        log_error: bool,
        log_verbose_level: u32,
        log_format: &'a str,
    }
    to_json(&Document {
        log_file: &settings.file_name(),
        log_info: settings.has_info,
        log_warning: settings.has_warning,
        log_error: settings.has_error,
        log_verbose_level: settings.verbose_level,
        log_format: settings.format.name(),
    })
}

#[cfg(test)]
mod tests {
    use galatea_types::Code;

    use super::*;

    fn read(body: &str) -> (LogChange, Option<(Code, String)>) {
        let mut change = LogChange::default();
        let read = decode_log_change(body.as_bytes(), &mut change);
        (change, read.err().map(|error| (error.code(), error.message().to_owned())))
    }

    #[test]
    fn settings_are_checked_in_a_fixed_order() {
        let (change, error) = read(r#"{"log_format":"x","log_error":1,"log_info":false}"#);
        assert_eq!(change, LogChange { has_info: Some(false), ..LogChange::default() });
        let text = "attempt to access JSON non-boolean as boolean".to_owned();
        assert_eq!(error, Some((Code::Internal, text)));
    }

    #[test]
    fn the_file_setting_is_refused_first() {
        let (change, error) = read(r#"{"log_info":false,"log_file":""}"#);
        assert_eq!((change, error.map(|e| e.0)), (LogChange::default(), Some(Code::Unsupported)));
    }

    #[test]
    fn null_and_unknown_settings_are_ignored() {
        let (change, error) = read(r#"{"log_info":null,"log_file":null,"other":[{}]}"#);
        assert_eq!((change, error), (LogChange::default(), None));
    }

    #[test]
    fn the_first_of_two_equal_settings_counts() {
        let (change, error) = read(r#"{"log_verbose_level":2,"log_verbose_level":9999999999}"#);
        assert_eq!((change.verbose_level, error), (Some(2), None));
    }

    #[test]
    fn a_huge_verbose_level_is_clamped() {
        for level in [4_294_967_296_u64, u64::MAX] {
            let (change, _) = read(&format!(r#"{{"log_verbose_level":{level}}}"#));
            assert_eq!(change.verbose_level, Some(i32::MAX as u32));
        }
    }

    #[test]
    fn a_syntax_error_changes_nothing() {
        for body in ["", "{", "[]", "5", r#"{"log_info":false"#, r#"{"log_info":false} x"#] {
            let (change, error) = read(body);
            assert!(error.is_some(), "{body}");
            assert_eq!(change, LogChange::default(), "{body}");
        }
    }

    #[test]
    fn only_the_name_of_the_log_file_is_shown() {
        for (file, shown) in [("/var/log/secret/g.log", "g.log"), ("logs/g.log", "logs/g.log")] {
            let settings = LogSettings { file: Some(file.into()), ..LogSettings::default() };
            let text = String::from_utf8(log_settings(&settings)).expect("UTF-8");
            assert!(text.starts_with(&format!(r#"{{"log_file":"{shown}","log_info":true,"#)));
        }
    }
}
