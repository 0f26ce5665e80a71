//! Every field of a configuration, by the description of the message, to be set to what a stranger might choose.

#![allow(clippy::expect_used, clippy::unreachable)] // a test may stop where it stands

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

/// A field with a number, a text or a list, however deep in the message.
#[derive(Clone, Debug)]
pub struct ConfigField {
    steps: Vec<Step>,
    kind: Kind,
}

/// One step from a message into a field of it.
#[derive(Clone, Debug)]
struct Step {
    field: FieldDescriptor,
    /// Into the key of a map's entry, not its value.
    is_key: bool,
}

/// The fields that hold numbers, keys of maps among them.
pub fn number_fields() -> Vec<ConfigField> {
    let is_number = |kind: &Kind| {
        !matches!(kind, Kind::String | Kind::Bytes | Kind::Bool | Kind::Enum(_) | Kind::Message(_))
    };
    scalar_fields(is_number)
}

/// The fields that hold text, keys of maps among them.
pub fn text_fields() -> Vec<ConfigField> {
    scalar_fields(|kind| matches!(kind, Kind::String))
}

fn scalar_fields(is_wanted: impl Fn(&Kind) -> bool) -> Vec<ConfigField> {
    let mut fields = Vec::new();
    let pool = DescriptorPool::decode(galatea_proto::FILE_DESCRIPTOR_SET).expect("descriptors");
    let root = pool.get_message_by_name("inference.ModelConfig").expect("the message");
    collect(&root, &mut Vec::new(), &mut fields);
    fields.retain(|field: &ConfigField| is_wanted(&field.kind));
    fields
}

fn collect(message: &MessageDescriptor, steps: &mut Vec<Step>, found: &mut Vec<ConfigField>) {
    for field in message.fields() {
        steps.push(Step { field: field.clone(), is_key: false });
        match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                collect_kind(entry.map_entry_value_field().kind(), steps, found);
                steps.pop();
                steps.push(Step { field, is_key: true });
                collect_kind(entry.map_entry_key_field().kind(), steps, found);
            }
            kind => collect_kind(kind, steps, found),
        }
        steps.pop();
    }
}

fn collect_kind(kind: Kind, steps: &mut Vec<Step>, found: &mut Vec<ConfigField>) {
    match kind {
        Kind::Message(inner) => collect(&inner, steps, found),
        kind => found.push(ConfigField { steps: steps.clone(), kind }),
    }
}

impl ConfigField {
    /// E.g. `instance_group.count`.
    pub fn path(&self) -> String {
        let step = |s: &Step| format!("{}{}", s.field.name(), if s.is_key { "{key}" } else { "" });
        self.steps.iter().map(step).collect::<Vec<_>>().join(".")
    }

    /// Numbers at and beyond the bounds of every type, as JSON.
    pub fn extremes(&self) -> Vec<Value> {
        if matches!(self.kind, Kind::Float | Kind::Double) {
            let words = ["NaN", "Infinity", "-Infinity"].map(Value::from);
            let numbers = [0.0, -0.0, 1.0, -1.0, 1e39, 1e308, -1e308, 5e-324].map(Value::from);
            return [&words[..], &numbers[..]].concat();
        }
        const NUMBERS: [&str; 18] = [
            "0",
            "1",
            "2",
            "-1",
            "1024",
            "2000000000",
            "1000000000000",
            "2147483647",
            "2147483648",
            "-2147483648",
            "4294967295",
            "4294967296",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "18446744073709551614",
            "18446744073709551615",
            "18446744073709551616",
        ];
        NUMBERS.map(Value::from).to_vec()
    }

    /// `base`, a configuration in JSON, with this field set. Where that is in a list or a map, in its first member;
    /// what excludes it is removed.
    pub fn set_in(&self, base: &Value, value: &Value) -> Value {
        let mut config = base.clone();
        set(&mut config, &self.steps, value);
        config
    }

    /// `base` with `count` members in the innermost list that holds this field, or in the field itself; `None` where
    /// there is none.
    pub fn repeat_in(&self, base: &Value, value: &Value, count: usize) -> Option<Value> {
        let last = self.steps.iter().rposition(|s| s.field.is_list())?;
        let (outer, inner) = self.steps.split_at(last + 1);
        let mut member = json!({});
        match inner {
            [] => member = value.clone(),
            inner => set(&mut member, inner, value),
        }
        let mut config = base.clone();
        set_whole(&mut config, outer, Value::Array(vec![member; count]));
        Some(config)
    }
}

fn set_whole(message: &mut Value, steps: &[Step], list: Value) {
    match steps {
        [] => {}
        [last] => drop(members(message, last).insert(last.field.name().to_owned(), list)),
        [step, rest @ ..] => set_whole(enter(message, step), rest, list),
    }
}

fn set(message: &mut Value, steps: &[Step], value: &Value) {
    let Some((step, rest)) = steps.split_first() else { return };
    let name = step.field.name().to_owned();
    if step.is_key {
        let entries = members(message, step).entry(name).or_insert_with(|| json!({}));
        let old = entries.as_object().and_then(|e| e.values().next().cloned());
        let key = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let entry = old.unwrap_or_else(|| default_entry(&step.field));
        *entries = Value::Object(Map::from_iter([(key, entry)]));
    } else if rest.is_empty() && !step.field.is_list() && !step.field.is_map() {
        members(message, step).insert(name, value.clone());
    } else if rest.is_empty() {
        *enter(message, step) = value.clone();
    } else {
        set(enter(message, step), rest, value);
    }
}

fn default_entry(field: &FieldDescriptor) -> Value {
    let Kind::Message(entry) = field.kind() else { return Value::Null };
    match entry.map_entry_value_field().kind() {
        Kind::Message(_) => json!({}),
        _ => json!("x"),
    }
}

/// The members of a message, without those that exclude the field.
fn members<'v>(message: &'v mut Value, step: &Step) -> &'v mut Map<String, Value> {
    if !message.is_object() {
        *message = json!({});
    }
    let Value::Object(members) = message else { unreachable!("it was just made one") };
    for other in step.field.containing_oneof().iter().flat_map(|oneof| oneof.fields()) {
        if other != step.field {
            members.remove(other.name());
        }
    }
    members
}

/// The field's value, the first of a list or a map.
fn enter<'v>(message: &'v mut Value, step: &Step) -> &'v mut Value {
    let value = members(message, step).entry(step.field.name().to_owned()).or_insert(Value::Null);
    if step.field.is_map() {
        if value.as_object().is_none_or(Map::is_empty) {
            *value = json!({ "1": {} });
        }
        return value.as_object_mut().and_then(|v| v.values_mut().next()).expect("one entry");
    }
    if step.field.is_list() {
        if value.as_array().is_none_or(Vec::is_empty) {
            *value = json!([{}]);
        }
        return value.as_array_mut().and_then(|v| v.first_mut()).expect("one member");
    }
    if !value.is_object() {
        *value = json!({});
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str) -> ConfigField {
        let mut all = number_fields();
        all.extend(text_fields());
        all.into_iter().find(|field| field.path() == path).expect(path)
    }

    #[test]
    fn fields_of_every_kind_are_set_by_their_path() {
        let base = json!({"input": [{"name": "x"}, {"name": "y"}], "dynamic_batching": {}});
        for (path, expected) in [
            ("max_batch_size", json!({"max_batch_size": 7})),
            ("input.dims", json!({"input": [{"name": "x", "dims": [7]}, {"name": "y"}]})),
            (
                "dynamic_batching.priority_queue_policy.max_queue_size",
                json!({"dynamic_batching": {"priority_queue_policy": {"1": {"max_queue_size": 7}}}}),
            ),
            (
                "dynamic_batching.priority_queue_policy{key}",
                json!({"dynamic_batching": {"priority_queue_policy": {"7": {}}}}),
            ),
        ] {
            let mut whole = base.clone();
            whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
            assert_eq!(field(path).set_in(&base, &json!(7)), whole, "{path}");
        }
        let of_ensemble = field("ensemble_scheduling.max_inflight_requests");
        let changed = of_ensemble.set_in(&base, &json!(7));
        assert_eq!(changed["dynamic_batching"], Value::Null, "a choice has one member");
        let many = field("input.dims").repeat_in(&base, &json!(1), 3).unwrap();
        assert_eq!(many["input"][0]["dims"], json!([1, 1, 1]));
        let many = field("input.name").repeat_in(&base, &json!("z"), 2).unwrap();
        assert_eq!(many["input"], json!([{"name": "z"}, {"name": "z"}]));
        assert!(field("max_batch_size").repeat_in(&base, &json!(1), 3).is_none());
    }
}
