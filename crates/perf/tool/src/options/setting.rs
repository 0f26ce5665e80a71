//! Readers of values with parts: shapes, headers, request parameters, lists of models.

use galatea_types::ParameterValue;

use galatea_command_line::Occurrence;

use super::{
    error::OptionError,
    readers::{failed, invalid, whole},
};

/// Reads `name:2,3`; the name may have colons.
pub fn shape(occurrence: &Occurrence) -> Result<(String, Vec<i64>), OptionError> {
    let (name, dimensions) = occurrence
        .text
        .rsplit_once(':')
        .ok_or_else(|| failed(occurrence, "There must be a colon after input name."))?;
    let dimensions: Option<Vec<i64>> = dimensions
        .split(',')
        .map(|dimension| whole(dimension).and_then(|number| i64::try_from(number).ok()))
        .collect();
    match dimensions {
        Some(dimensions) if dimensions.iter().any(|&dimension| dimension <= 0) => {
            Err(failed(occurrence, "The dimensions of input tensor must be > 0."))
        }
        Some(dimensions) if !name.is_empty() => Ok((name.to_owned(), dimensions)),
        _ => Err(invalid(occurrence, "name:d1,d2,... with whole numbers")),
    }
}

/// Reads `name:value:type`.
pub fn request_parameter(occurrence: &Occurrence) -> Result<(String, ParameterValue), OptionError> {
    let parts: Vec<&str> = occurrence.text.split(':').collect();
    let &[name, value, kind] = parts.as_slice() else {
        return Err(failed(occurrence, "The value does not match <name:value:type>."));
    };
    if name.is_empty() {
        return Err(invalid(occurrence, "a name before the first colon"));
    }
    let read = match kind.to_ascii_lowercase().as_str() {
        "string" => ParameterValue::String(value.to_owned()),
        "int" => match value.trim().parse() {
            Ok(number) => ParameterValue::Int(number),
            Err(_) => return Err(invalid(occurrence, "a whole number before ':int'")),
        },
        "bool" => match value.to_ascii_lowercase().as_str() {
            "true" | "1" => ParameterValue::Bool(true),
            "false" | "0" => ParameterValue::Bool(false),
            _ => return Err(invalid(occurrence, "'true' or 'false' before ':bool'")),
        },
        _ => {
            return Err(failed(
                occurrence,
                format!(
                    "Unsupported type provided: '{kind}'. The available options are 'bool', 'int', or 'string'."
                ),
            ));
        }
    };
    Ok((name.to_owned(), read))
}

/// Reads `a:1,b`: names and versions, with blanks anywhere.
pub fn composing_models(occurrence: &Occurrence) -> Result<Vec<(String, String)>, OptionError> {
    let text: String = occurrence.text.chars().filter(|c| !c.is_whitespace()).collect();
    text.split(',')
        .map(|model| {
            let (name, version) = model.split_once(':').unwrap_or((model, ""));
            (!name.is_empty()).then(|| (name.to_owned(), version.to_owned()))
        })
        .collect::<Option<_>>()
        .ok_or_else(|| {
            invalid(occurrence, "model names, each with :version or without, between commas")
        })
}

/// Returns true for `package.service/method`, the form that perf_analyzer requires.
pub fn is_grpc_method(text: &str) -> bool {
    text.split_once('/').is_some_and(|(service, method)| {
        let has_package = service
            .rsplit_once('.')
            .is_some_and(|(package, service)| !package.is_empty() && !service.is_empty());
        has_package && !method.is_empty() && !method.contains('/')
    })
}
