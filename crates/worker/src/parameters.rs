//! Request and response parameters as the JSON that workers write.

use galatea_types::{Error, ParameterValue, Parameters, Result};
use serde_json::Value;

/// Parameters from the JSON object a model gave; empty text: none.
///
/// # Errors
/// When it is another JSON value, or has members that are no parameters.
pub fn read(json: &[u8]) -> Result<Parameters> {
    if json.is_empty() {
        return Ok(Parameters::new());
    }
    match serde_json::from_slice(json) {
        Ok(Value::Object(members)) => {
            members.into_iter().map(|(name, value)| Ok((name, read_value(value)?))).collect()
        }
        Ok(_) => Err(Error::invalid_arg("parameters must be a JSON object")),
        Err(error) => {
            Err(Error::invalid_arg(format!("failed to parse parameters: {error}"))
                .with_source(error))
        }
    }
}

fn read_value(value: Value) -> Result<ParameterValue> {
    match value {
        Value::Bool(value) => Ok(ParameterValue::Bool(value)),
        Value::String(value) => Ok(ParameterValue::String(value)),
        Value::Number(number) => number
            .as_i64()
            .map(ParameterValue::Int)
            .or_else(|| number.as_u64().map(ParameterValue::Uint))
            .or_else(|| number.as_f64().map(ParameterValue::Double))
            .ok_or_else(unsupported),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(unsupported()),
    }
}

fn unsupported() -> Error {
    Error::invalid_arg("Unsupported value type on parameters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_taken_and_nothing_else() {
        let read_text = |json: &str| read(json.as_bytes());
        let parameters = read_text(r#"{"a":1,"b":true,"c":"x","d":0.5,"e":18446744073709551615}"#);
        let expected = [
            ("a", ParameterValue::Int(1)),
            ("b", ParameterValue::Bool(true)),
            ("c", ParameterValue::String("x".to_owned())),
            ("d", ParameterValue::Double(0.5)),
            ("e", ParameterValue::Uint(u64::MAX)),
        ];
        let expected: Parameters = expected.map(|(n, v)| (n.to_owned(), v)).into();
        assert_eq!(parameters.expect("read"), expected);
        assert_eq!(read_text("").expect("none"), Parameters::new());
        for bad in ["[]", "{", r#"{"a":[1]}"#] {
            read_text(bad).expect_err(bad);
        }
    }
}
