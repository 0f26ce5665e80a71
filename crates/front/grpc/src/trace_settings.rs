//! Reads the trace settings, and changes them while the server runs.

use galatea_proto::inference::{
    TraceSettingRequest, TraceSettingResponse, trace_setting_response::SettingValue as Shown,
};
use galatea_trace::{NumberField, SettingValue, SettingsChange, SettingsError, Tracer};
use galatea_types::{Protocol, Result};

/// Makes the requested change and returns the settings, of a model if the request names one.
pub(crate) fn change(
    tracer: &Tracer,
    request: &TraceSettingRequest,
) -> Result<TraceSettingResponse> {
    let model = Some(&*request.model_name).filter(|name| !name.is_empty());
    // A request without settings only asks.
    if !request.settings.is_empty() {
        tracer.change(model, &read(request)?)?;
    }
    Ok(response(tracer.settings(model)))
}

fn read(request: &TraceSettingRequest) -> Result<SettingsChange, SettingsError> {
    let given = |name: &str| request.settings.get(name).map(|setting| &*setting.value);
    if given("trace_file").is_some() {
        return Err(SettingsError::File);
    }
    let mut change = SettingsChange::default();
    match given("trace_level") {
        None => {}
        Some([]) => change.clear_levels(),
        Some(names) => change.set_levels(names)?,
    }
    for field in NumberField::ALL {
        match given(field.name()) {
            None => {}
            Some([]) => change.clear(field),
            Some([one]) => change.set(field, one, Protocol::Grpc)?,
            Some(_) => return Err(SettingsError::SeveralValues(field.name())),
        }
    }
    Ok(change)
}

fn response(settings: Vec<(String, SettingValue)>) -> TraceSettingResponse {
    let mut response = TraceSettingResponse::default();
    for (name, value) in settings {
        let shown: &mut Shown = response.settings.entry(name).or_default();
        match value {
            SettingValue::One(text) => shown.value.push(text),
            SettingValue::List(names) => shown.value.extend(names.iter().map(|&n| n.to_owned())),
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use galatea_proto::inference::trace_setting_request::SettingValue as Wanted;

    use super::*;

    fn read_of(settings: &[(&str, &[&str])]) -> Result<SettingsChange, SettingsError> {
        let wanted = |values: &[&str]| Wanted { value: values.iter().map(|&v| v.into()).collect() };
        let settings = settings.iter().map(|(name, values)| ((*name).into(), wanted(values)));
        read(&TraceSettingRequest { settings: settings.collect(), model_name: String::new() })
    }

    #[test]
    fn an_empty_list_clears_and_two_values_are_refused() {
        let mut wanted = SettingsChange::default();
        wanted.clear_levels();
        wanted.clear(NumberField::LogFrequency);
        assert_eq!(
            read_of(&[("log_frequency", &[]), ("trace_level", &[]), ("x", &["1"])]),
            Ok(wanted)
        );
        let two = read_of(&[("trace_rate", &["1", "2"])]).expect_err("two values");
        assert_eq!(two.to_string(), "expect only 1 value for 'trace_rate'");
    }

    #[test]
    fn the_file_is_refused_before_all_else() {
        let named = read_of(&[("trace_file", &[]), ("trace_rate", &["abc"])]);
        assert_eq!(named, Err(SettingsError::File));
    }

    #[test]
    fn a_setting_that_comes_twice_has_both_values() {
        let one = |text: &str| ("x".to_owned(), SettingValue::One(text.to_owned()));
        let shown = response(vec![one("1"), one("2")]);
        assert_eq!(shown.settings["x"].value, ["1", "2"]);
    }
}
