//! Reads JSON values into the message, by its description.

use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use serde_json::Value as Json;

use super::error::FieldError;
use crate::{schema, text::suggest};

type Result<T> = std::result::Result<T, FieldError>;

pub(super) fn read_message(descriptor: MessageDescriptor, json: &Json) -> Result<DynamicMessage> {
    let Json::Object(members) = json else {
        return Err(mismatch("an object", json));
    };
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, json) in members.iter().filter(|(_, json)| !json.is_null()) {
        let field = find_field(&descriptor, name)?;
        let part = format!(".{}", field.name());
        if is_oneof_taken(&message, &field) {
            return Err(FieldError::new("another member of the same choice is set").at(&part));
        }
        let value = read_field(&field, json).map_err(|e| e.at(&part))?;
        message.set_field(&field, value);
    }
    Ok(message)
}

fn find_field(descriptor: &MessageDescriptor, name: &str) -> Result<FieldDescriptor> {
    let field = descriptor.get_field_by_name(name);
    let field = field.or_else(|| descriptor.get_field_by_json_name(name));
    field.ok_or_else(|| {
        let error = FieldError::new(format!("no field `{name}` in {}", descriptor.name()));
        error.with_hint(suggest::near_field(name, descriptor))
    })
}

fn is_oneof_taken(message: &DynamicMessage, field: &FieldDescriptor) -> bool {
    let oneof = field.containing_oneof();
    oneof.is_some_and(|o| o.fields().any(|f| message.has_field(&f)))
}

fn read_field(field: &FieldDescriptor, json: &Json) -> Result<Value> {
    match json {
        Json::Object(members) if field.is_map() => read_map(field, members),
        Json::Array(values) if field.is_list() => read_list(&field.kind(), values),
        _ if field.is_map() => Err(mismatch("an object", json)),
        _ if field.is_list() => Err(mismatch("an array", json)),
        _ => read_single(&field.kind(), json),
    }
}

fn read_list(kind: &Kind, values: &[Json]) -> Result<Value> {
    let values = values.iter().enumerate();
    let values = values.map(|(i, v)| read_single(kind, v).map_err(|e| e.at(&format!("[{i}]"))));
    values.collect::<Result<_>>().map(Value::List)
}

fn read_map(field: &FieldDescriptor, members: &serde_json::Map<String, Json>) -> Result<Value> {
    let Kind::Message(entry) = field.kind() else {
        return Err(FieldError::new("not a map"));
    };
    let key_kind = entry.map_entry_key_field().kind();
    let value_kind = entry.map_entry_value_field().kind();
    let entries = members.iter().map(|(key, value)| {
        let at = |e: FieldError| e.at(&format!("[\"{key}\"]"));
        Ok((read_key(&key_kind, key).map_err(at)?, read_single(&value_kind, value).map_err(at)?))
    });
    entries.collect::<Result<_>>().map(Value::Map)
}

fn read_key(kind: &Kind, key: &str) -> Result<MapKey> {
    let value = match kind {
        Kind::String => Value::String(key.to_owned()),
        _ => read_single(kind, &Json::from(key))?,
    };
    value.into_map_key().ok_or_else(|| FieldError::new("not a key"))
}

fn read_single(kind: &Kind, json: &Json) -> Result<Value> {
    match (kind, json) {
        (Kind::Message(descriptor), _) => {
            read_message(descriptor.clone(), json).map(Value::Message)
        }
        (Kind::String, Json::String(text)) => Ok(Value::String(text.clone())),
        (Kind::String | Kind::Bytes, _) => Err(mismatch("a string", json)),
        (Kind::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
        (Kind::Bool, _) => Err(mismatch("true or false", json)),
        (Kind::Enum(descriptor), Json::String(name)) => read_enum(descriptor, name),
        (Kind::Float, _) => read_float(json).map(|v| Value::F32(v as f32)),
        (Kind::Double, _) => read_float(json).map(Value::F64),
        _ => read_integer(kind, json),
    }
}

fn read_enum(descriptor: &EnumDescriptor, name: &str) -> Result<Value> {
    let wanted = name.to_ascii_uppercase().replace('-', "_");
    let value = descriptor.values().find(|v| v.name() == wanted);
    let number = value.map(|v| v.number()).or_else(|| name.parse().ok());
    number.map(Value::EnumNumber).ok_or_else(|| {
        let error = FieldError::new(format!("`{name}` is not a value of {}", descriptor.name()));
        error.with_hint(suggest::near_value(name, descriptor))
    })
}

fn read_float(json: &Json) -> Result<f64> {
    let number = match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => text.parse().ok().filter(|v: &f64| v.is_finite()),
        },
        _ => None,
    };
    number.ok_or_else(|| mismatch("a number", json))
}

fn read_integer(kind: &Kind, json: &Json) -> Result<Value> {
    let number = match json {
        Json::Number(number) => whole(number),
        Json::String(text) => text.parse().ok(),
        _ => None,
    };
    let number: i128 = number.ok_or_else(|| mismatch("an integer", json))?;
    let value = schema::integer(kind, number);
    value.ok_or_else(|| FieldError::new(format!("{number} is out of range")))
}

/// Returns an integer, also when it is written as `1.0` or `1e3`.
fn whole(number: &serde_json::Number) -> Option<i128> {
    /// Above this a double no longer holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let signed = number.as_i64().map(i128::from);
    let unsigned = || number.as_u64().map(i128::from);
    let float = || {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i128)
    };
    signed.or_else(unsigned).or_else(float)
}

fn mismatch(expected: &str, json: &Json) -> FieldError {
    let found = match json {
        Json::Object(_) => "an object".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        other => other.to_string().chars().take(40).collect(),
    };
    FieldError::new(format!("expected {expected}, found {found}"))
}
