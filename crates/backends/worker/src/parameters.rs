//! Request and response parameters, from the JSON that workers write.

use std::{collections::HashSet, fmt};

use galatea_types::{Error, ParameterValue, Parameters, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// Reads parameters from a model's JSON object, in its order. Empty text means no parameters.
///
/// # Errors
/// When it is another JSON value, or has members that cannot be parameters.
pub fn read(json: &[u8]) -> Result<Parameters> {
    if json.is_empty() {
        return Ok(Parameters::new());
    }
    match serde_json::from_slice(json) {
        Ok(ObjectMembers(members)) => {
            members.into_iter().map(|(name, value)| Ok((name, read_value(value)?))).collect()
        }
        Err(error) if error.is_data() => {
            Err(Error::invalid_arg("parameters must be a JSON object"))
        }
        Err(error) => {
            Err(Error::invalid_arg(format!("failed to parse parameters: {error}"))
                .with_source(error))
        }
    }
}

/// The members of an object in their order: serde_json's own object sorts them.
struct ObjectMembers(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for ObjectMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = ObjectMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectMembers, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        // If a name comes twice, the last one counts, as in a dictionary.
        let mut names = HashSet::new();
        let mut kept: Vec<_> =
            members.into_iter().rev().filter(|(name, _)| names.insert(name.clone())).collect();
        kept.reverse();
        Ok(ObjectMembers(kept))
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
    fn the_last_of_two_equal_names_counts() {
        let parameters = read(br#"{"a":1,"b":2,"a":3}"#).expect("parameters");
        let expected = [("b", ParameterValue::Int(2)), ("a", ParameterValue::Int(3))];
        assert_eq!(parameters, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn only_scalar_parameters_are_accepted() {
        let read_text = |json: &str| read(json.as_bytes());
        let parameters = read_text(r#"{"e":18446744073709551615,"a":1,"b":true,"c":"x","d":0.5}"#);
        let expected = [
            ("e", ParameterValue::Uint(u64::MAX)),
            ("a", ParameterValue::Int(1)),
            ("b", ParameterValue::Bool(true)),
            ("c", ParameterValue::String("x".to_owned())),
            ("d", ParameterValue::Double(0.5)),
        ];
        let expected: Parameters = expected.map(|(n, v)| (n.to_owned(), v)).into();
        assert_eq!(parameters.expect("read"), expected);
        assert_eq!(read_text("").expect("none"), Parameters::new());
        for bad in ["[]", "{", r#"{"a":[1]}"#] {
            read_text(bad).expect_err(bad);
        }
    }
}
