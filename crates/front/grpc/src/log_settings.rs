//! Reads the log settings, and changes them while the server runs.

use galatea_proto::inference::{
    LogSettingsRequest, LogSettingsResponse,
    log_settings_request::setting_value::ParameterChoice as Given,
    log_settings_response::{SettingValue, setting_value::ParameterChoice},
};
use galatea_telemetry::logger::{self, LogChange, LogFormat, LogSettings};
use galatea_types::{Error, Result};

/// The most verbose level. A greater number means this one.
const MAX_LEVEL: u32 = i32::MAX as u32;

/// The error for an invalid change. Texts are Triton's.
#[derive(Debug, PartialEq, thiserror::Error)]
enum LogSettingsError {
    #[error("log file location can not be updated through network protocol")]
    File,
    #[error("expect {expected} for '{name}'")]
    Type { name: &'static str, expected: &'static str },
    #[error("invalid argument for log_format, got: {0}")]
    Format(String),
}

impl From<LogSettingsError> for Error {
    fn from(error: LogSettingsError) -> Self {
        let new = match error {
            LogSettingsError::File => Error::unsupported,
            _ => Error::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

/// Makes the requested change and returns the current settings. As in Triton, the settings before a mistake are changed
/// all the same.
pub(crate) fn change(request: &LogSettingsRequest) -> Result<LogSettingsResponse> {
    let mut wanted = LogChange::default();
    let read = read(request, &mut wanted);
    logger::change(&wanted);
    read?;
    Ok(response(&logger::settings()))
}

fn read(request: &LogSettingsRequest, change: &mut LogChange) -> Result<(), LogSettingsError> {
    let given =
        |name| request.settings.get(name).map(|setting| (name, setting.parameter_choice.as_ref()));
    if given("log_file").is_some() {
        return Err(LogSettingsError::File);
    }
    change.has_info = given("log_info").map(boolean).transpose()?;
    change.has_warning = given("log_warning").map(boolean).transpose()?;
    change.has_error = given("log_error").map(boolean).transpose()?;
    change.verbose_level = given("log_verbose_level").map(level).transpose()?;
    change.format = given("log_format").map(format).transpose()?;
    Ok(())
}

type Setting<'a> = (&'static str, Option<&'a Given>);

fn boolean((name, value): Setting<'_>) -> Result<bool, LogSettingsError> {
    match value {
        Some(Given::BoolParam(value)) => Ok(*value),
        _ => Err(LogSettingsError::Type { name, expected: "boolean" }),
    }
}

fn level((name, value): Setting<'_>) -> Result<u32, LogSettingsError> {
    match value {
        Some(Given::Uint32Param(level)) => Ok((*level).min(MAX_LEVEL)),
        _ => Err(LogSettingsError::Type { name, expected: "int32" }),
    }
}

fn format((name, value): Setting<'_>) -> Result<LogFormat, LogSettingsError> {
    match value {
        Some(Given::StringParam(text)) => {
            LogFormat::named(text).ok_or_else(|| LogSettingsError::Format(text.clone()))
        }
        _ => Err(LogSettingsError::Type { name, expected: "string" }),
    }
}

fn response(settings: &LogSettings) -> LogSettingsResponse {
    let named = [
        ("log_file", ParameterChoice::StringParam(settings.file_name().into_owned())),
        ("log_info", ParameterChoice::BoolParam(settings.has_info)),
        ("log_warning", ParameterChoice::BoolParam(settings.has_warning)),
        ("log_error", ParameterChoice::BoolParam(settings.has_error)),
        ("log_verbose_level", ParameterChoice::Uint32Param(settings.verbose_level)),
        ("log_format", ParameterChoice::StringParam(settings.format.name().to_owned())),
    ];
    let setting = |choice| SettingValue { parameter_choice: Some(choice) };
    LogSettingsResponse {
        settings: named.map(|(name, choice)| (name.to_owned(), setting(choice))).into(),
    }
}

#[cfg(test)]
mod tests {
    use galatea_proto::inference::log_settings_request::SettingValue as GivenValue;

    use super::*;

    fn request<const N: usize>(settings: [(&str, Given); N]) -> LogSettingsRequest {
        let value = |choice| GivenValue { parameter_choice: Some(choice) };
        LogSettingsRequest {
            settings: settings.map(|(name, choice)| (name.to_owned(), value(choice))).into(),
        }
    }

    #[test]
    fn settings_before_the_first_mistake_are_applied() {
        let mut change = LogChange::default();
        let wrong = request([
            ("log_info", Given::BoolParam(false)),
            ("log_verbose_level", Given::StringParam("1".into())),
            ("log_format", Given::StringParam("ISO8601".into())),
        ]);
        let error = read(&wrong, &mut change).expect_err("a text for a level");
        assert_eq!(error.to_string(), "expect int32 for 'log_verbose_level'");
        assert_eq!(change, LogChange { has_info: Some(false), ..LogChange::default() });
    }

    #[test]
    fn the_file_setting_is_refused_first() {
        let mut change = LogChange::default();
        let named = request([
            ("log_error", Given::BoolParam(false)),
            ("log_file", Given::StringParam(String::new())),
        ]);
        assert_eq!(read(&named, &mut change), Err(LogSettingsError::File));
        assert_eq!(change, LogChange::default());
    }

    #[test]
    fn the_response_has_all_six_settings() {
        let answer = response(&LogSettings::default());
        let names: Vec<&str> = answer.settings.keys().map(String::as_str).collect();
        let sorted =
            ["log_error", "log_file", "log_format", "log_info", "log_verbose_level", "log_warning"];
        assert_eq!(names, sorted);
    }
}
