//! Writes a message as text, as people write it.

use std::fmt::Write;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

use crate::{RawModelConfig, json, schema};

/// Returns a configuration as `config.pbtxt`: the fields that are set, in the order of their declaration.
pub fn to_text(raw: &RawModelConfig) -> String {
    let mut text = String::new();
    let Some(descriptor) = schema::model_config() else { return text };
    let mut message = DynamicMessage::new(descriptor);
    if message.transcode_from(raw).is_ok() {
        write_message(&message, 0, &mut text);
    }
    text
}

fn write_message(message: &DynamicMessage, depth: usize, text: &mut String) {
    let descriptor = message.descriptor();
    let declared = descriptor.descriptor_proto().field.iter();
    let fields = declared.filter_map(|field| descriptor.get_field_by_name(field.name()));
    for field in fields.filter(|field| message.has_field(field)) {
        write_field(&field, &message.get_field(&field), depth, text);
    }
}

fn write_field(field: &FieldDescriptor, value: &Value, depth: usize, text: &mut String) {
    let (name, kind) = (field.name(), field.kind());
    match value {
        Value::List(values) if matches!(kind, Kind::Message(_)) => {
            line(depth, &format!("{name} ["), text);
            for (index, value) in values.iter().enumerate() {
                let comma = if index + 1 < values.len() { "," } else { "" };
                line(depth + 1, "{", text);
                write_inner(value, depth + 2, text);
                line(depth + 1, &format!("}}{comma}"), text);
            }
            line(depth, "]", text);
        }
        Value::List(values) => {
            let all: Vec<String> = values.iter().map(|value| scalar(&kind, value)).collect();
            line(depth, &format!("{name}: [ {} ]", all.join(", ")), text);
        }
        Value::Map(entries) => {
            let Kind::Message(entry) = kind else { return };
            let value_kind = entry.map_entry_value_field().kind();
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                line(depth, &format!("{name} {{"), text);
                line(depth + 1, &format!("key: {}", key_text(key)), text);
                match value {
                    Value::Message(_) => block("value", value, depth + 1, text),
                    _ => line(depth + 1, &format!("value: {}", scalar(&value_kind, value)), text),
                }
                line(depth, "}", text);
            }
        }
        Value::Message(_) => block(name, value, depth, text),
        _ => line(depth, &format!("{name}: {}", scalar(&kind, value)), text),
    }
}

fn block(name: &str, value: &Value, depth: usize, text: &mut String) {
    let before = text.len();
    line(depth, &format!("{name} {{"), text);
    let begun = text.len();
    write_inner(value, depth + 1, text);
    if text.len() == begun {
        text.truncate(before);
        return line(depth, &format!("{name} {{ }}"), text);
    }
    line(depth, "}", text);
}

fn write_inner(value: &Value, depth: usize, text: &mut String) {
    if let Value::Message(message) = value {
        write_message(message, depth, text);
    }
}

fn line(depth: usize, content: &str, text: &mut String) {
    let written = writeln!(text, "{:indent$}{content}", "", indent = depth * 2);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

fn scalar(kind: &Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::String(text)) => quoted(text),
        (Kind::Enum(names), Value::EnumNumber(number)) => match names.get_value(*number) {
            Some(named) => named.name().to_owned(),
            None => number.to_string(),
        },
        (_, Value::Bool(v)) => v.to_string(),
        (_, Value::I32(v) | Value::EnumNumber(v)) => v.to_string(),
        (_, Value::I64(v)) => v.to_string(),
        (_, Value::U32(v)) => v.to_string(),
        (_, Value::U64(v)) => v.to_string(),
        (_, Value::F32(v)) => v.to_string(),
        (_, Value::F64(v)) => v.to_string(),
        // The message has no field of type bytes, and lists do not nest.
        (_, Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Message(_)) => String::new(),
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => quoted(text),
        number => json::key_text(number),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\{:03o}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_text;

    const TEXT: &str = r#"name: "m"
max_batch_size: 4
input [
  {
    name: "a \"b\" \\ \n"
    data_type: TYPE_FP32
    dims: [ 3, -1 ]
    reshape { }
  },
  {
    name: "c"
    dims: [ 1 ]
  }
]
instance_group [
  {
    count: 2
    kind: KIND_CPU
  }
]
parameters {
  key: "x"
  value {
    string_value: "1"
  }
}
dynamic_batching {
  max_queue_delay_microseconds: 100
}
"#;

    #[test]
    fn written_text_is_parsed_back() {
        let raw = parse_text(TEXT).expect("valid");
        let written = to_text(&raw);
        assert_eq!(parse_text(&written).expect("valid"), raw);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&written), sorted(TEXT), "{written}");
    }

    #[test]
    fn special_characters_of_strings_round_trip() {
        let name: String = (0..300).filter_map(char::from_u32).chain(['ä', '\u{1f600}']).collect();
        let raw = RawModelConfig { name, ..RawModelConfig::default() };
        assert_eq!(parse_text(&to_text(&raw)).expect("valid"), raw);
    }
}
