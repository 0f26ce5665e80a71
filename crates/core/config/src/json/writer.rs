//! Writes the message as JSON, in the order and the forms of Triton's answers.

use std::fmt::{Display, Write};

use prost_reflect::{
    DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, ReflectMessage, Value,
};

pub(super) fn write_message(message: &DynamicMessage, json: &mut String) {
    let descriptor = message.descriptor();
    let declared = descriptor.descriptor_proto().field.iter();
    let fields = declared.filter_map(|f| descriptor.get_field_by_name(f.name()));
    let shown = fields.filter(|f| !f.supports_presence() || message.has_field(f));
    // The order of declaration, with scalar members of a oneof last: Triton's answers have this order.
    let (last, first): (Vec<_>, Vec<_>) = shown.partition(is_scalar_choice);
    let shown = first.into_iter().chain(last);
    write_all(json, ['{', '}'], shown, |json, field| {
        write_string(field.name(), json);
        json.push(':');
        write_value(&field, &message.get_field(&field), json);
    });
}

fn is_scalar_choice(field: &FieldDescriptor) -> bool {
    field.containing_oneof().is_some() && !matches!(field.kind(), Kind::Message(_))
}

fn write_all<T>(
    json: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    json.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        write(json, item);
    }
    json.push(close);
}

fn write_value(field: &FieldDescriptor, value: &Value, json: &mut String) {
    match value {
        Value::List(values) => {
            write_all(json, ['[', ']'], values, |json, v| write_single(&field.kind(), v, json));
        }
        Value::Map(entries) => write_map(field, entries, json),
        single => write_single(&field.kind(), single, json),
    }
}

fn write_map(
    field: &FieldDescriptor,
    entries: &std::collections::HashMap<MapKey, Value>,
    json: &mut String,
) {
    let Kind::Message(entry) = field.kind() else { return };
    let kind = entry.map_entry_value_field().kind();
    let mut entries = entries.iter().collect::<Vec<_>>();
    entries.sort_unstable_by_key(|(key, _)| *key);
    write_all(json, ['{', '}'], entries, |json, (key, value)| {
        write_string(&key_text(key), json);
        json.push(':');
        write_single(&kind, value, json);
    });
}

pub(crate) fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(v) => v.to_string(),
        MapKey::I32(v) => v.to_string(),
        MapKey::I64(v) => v.to_string(),
        MapKey::U32(v) => v.to_string(),
        MapKey::U64(v) => v.to_string(),
        MapKey::String(v) => v.clone(),
    }
}

fn write_single(kind: &Kind, value: &Value, json: &mut String) {
    match (kind, value) {
        (_, Value::Message(message)) => write_message(message, json),
        (_, Value::String(text)) => write_string(text, json),
        (Kind::Enum(descriptor), Value::EnumNumber(number)) => {
            write_enum(descriptor, *number, json);
        }
        (_, Value::F32(v)) => write_float(f64::from(*v), v, json),
        (_, Value::F64(v)) => write_float(*v, v, json),
        (_, Value::Bool(v)) => write_plain(v, json),
        (_, Value::I32(v) | Value::EnumNumber(v)) => write_plain(v, json),
        (_, Value::I64(v)) => write_plain(v, json),
        (_, Value::U32(v)) => write_plain(v, json),
        (_, Value::U64(v)) => write_plain(v, json),
        // The message has no field of type bytes, and lists do not nest.
        (_, Value::Bytes(_) | Value::List(_) | Value::Map(_)) => json.push_str("null"),
    }
}

/// Writes the name, or the number when the enum has no name for it.
fn write_enum(descriptor: &EnumDescriptor, number: i32, json: &mut String) {
    match descriptor.get_value(number) {
        Some(value) => write_string(value.name(), json),
        None => write_plain(number, json),
    }
}

/// Writes whole numbers without a point, others in their shortest form. `shown` prevents an f32 from being printed with the
/// digits of an f64.
fn write_float(value: f64, shown: &(impl Display + std::fmt::LowerExp), json: &mut String) {
    const PLAIN: std::ops::Range<f64> = 1e-5..1e15;
    let outcome = match value.abs() {
        _ if value.is_nan() => write!(json, "\"NaN\""),
        magnitude if magnitude.is_infinite() && value > 0.0 => write!(json, "\"Infinity\""),
        magnitude if magnitude.is_infinite() => write!(json, "\"-Infinity\""),
        magnitude if magnitude == 0.0 && value.is_sign_negative() => write!(json, "-0.0"),
        magnitude if magnitude == 0.0 || PLAIN.contains(&magnitude) => write!(json, "{shown}"),
        _ => write!(json, "{shown:e}"),
    };
    debug_assert!(outcome.is_ok(), "writing to a string cannot fail");
}

fn write_plain(value: impl Display, json: &mut String) {
    let outcome = write!(json, "{value}");
    debug_assert!(outcome.is_ok(), "writing to a string cannot fail");
}

fn write_string(text: &str, json: &mut String) {
    json.push_str(&serde_json::Value::from(text).to_string());
}
