//! "Did you mean": the nearest known names to an unknown one, and the right place of a misplaced field.

use galatea_types::suggest;
use prost_reflect::{EnumDescriptor, Kind, MessageDescriptor};

use crate::schema;

/// Names from other tools, for which spelling alone would suggest a wrong name.
const VALUE_SYNONYMS: [(&str, &str); 14] = [
    ("BYTES", "TYPE_STRING"),
    ("STR", "TYPE_STRING"),
    ("OBJECT", "TYPE_STRING"),
    ("FLOAT", "TYPE_FP32"),
    ("FLOAT16", "TYPE_FP16"),
    ("FLOAT32", "TYPE_FP32"),
    ("FLOAT64", "TYPE_FP64"),
    ("DOUBLE", "TYPE_FP64"),
    ("HALF", "TYPE_FP16"),
    ("BFLOAT16", "TYPE_BF16"),
    ("INT", "TYPE_INT32"),
    ("LONG", "TYPE_INT64"),
    ("CUDA", "KIND_GPU"),
    ("KIND_CUDA", "KIND_GPU"),
];

/// Field names from other tools. The second name is suggested if the message has it.
const FIELD_SYNONYMS: [(&str, &str); 9] = [
    ("inputs", "input"),
    ("outputs", "output"),
    ("shape", "dims"),
    ("dtype", "data_type"),
    ("type", "data_type"),
    ("datatype", "data_type"),
    ("batch_size", "max_batch_size"),
    ("instances", "instance_group"),
    ("model", "model_name"),
];

/// Suffixes of names that mean microseconds, and other units.
const MICROSECONDS: [&str; 6] = ["us", "usec", "usecs", "micros", "microsec", "microsecond"];
const OTHER_UNITS: [&str; 7] = ["ms", "msec", "millis", "milliseconds", "s", "sec", "seconds"];

/// Most places that a message lists for a misplaced field.
const MOST_PLACES: usize = 3;

pub(crate) fn field_hint(name: &str, message: &MessageDescriptor) -> Option<String> {
    if is_yaml_dash(name) {
        return Some(LOOKS_LIKE_YAML.to_owned());
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let names = message.fields().map(|f| format!("`{}: {name}`", f.name()));
        return Some(format!(
            "a value stands behind the name of its field: {}",
            names.take(3).collect::<Vec<_>>().join(" or ")
        ));
    }
    if message.is_map_entry() {
        return Some(entry_hint(name));
    }
    let fields = message.fields().map(|f| f.name().to_owned()).collect::<Vec<_>>();
    synonym_hint(name, message)
        .or_else(|| unit_hint(name, message))
        .or_else(|| belongs_hint(name))
        .or_else(|| nearest_hint(name, &fields))
        .or_else(|| listing_hint("fields", &fields))
}

fn synonym_hint(name: &str, message: &MessageDescriptor) -> Option<String> {
    let (_, to) = FIELD_SYNONYMS.iter().find(|(from, to)| {
        from.eq_ignore_ascii_case(name) && message.get_field_by_name(to).is_some()
    })?;
    Some(format!("did you mean `{to}`?"))
}

/// Suggests the microseconds field of a name with another unit or none.
fn unit_hint(name: &str, message: &MessageDescriptor) -> Option<String> {
    let (stem, is_exact) = match name.rsplit_once('_') {
        Some((stem, unit)) if MICROSECONDS.contains(&unit) => (stem, true),
        Some((stem, unit)) if OTHER_UNITS.contains(&unit) => (stem, false),
        _ => (name, false),
    };
    let field = message.get_field_by_name(&format!("{stem}_microseconds"))?;
    let unit = if is_exact { "" } else { ", in microseconds" };
    Some(format!("did you mean `{}`{unit}?", field.name()))
}

/// Suggests a field of the message that could be meant.
pub(crate) fn near_field(name: &str, message: &MessageDescriptor) -> Option<String> {
    let fields = message.fields().map(|f| f.name().to_owned()).collect::<Vec<_>>();
    synonym_hint(name, message).or_else(|| nearest_hint(name, &fields))
}

/// Explains the form of a map entry.
pub(crate) fn entry_hint(name: &str) -> String {
    let name = name.trim_matches(['"', '\'']);
    format!("an entry of a map is `key: \"{name}\" value: ...`, with its name behind `key`")
}

/// The advice for a value in the form of YAML.
pub(crate) const LOOKS_LIKE_YAML: &str = "this looks like YAML, and the file is in protobuf's text format: a list of \
     messages is `input [ { name: \"x\" }, { name: \"y\" } ]`";

/// Returns whether the text is a dash that begins a list element or a document in YAML.
pub(crate) fn is_yaml_dash(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b == b'-')
}

/// Suggests the right place of a field at the wrong level.
fn belongs_hint(name: &str) -> Option<String> {
    let top = schema::model_config()?;
    if top.get_field_by_name(name).is_some() {
        return Some(format!("`{name}` belongs to the model itself: outside of all braces"));
    }
    let mut places = places_of(&top, name);
    places.truncate(MOST_PLACES);
    (!places.is_empty()).then(|| format!("`{name}` belongs inside of {}", places.join(" or ")))
}

/// Returns the paths of the messages that have such a field, those with the fewest steps first. The types of the message do not
/// recur.
fn places_of(top: &MessageDescriptor, name: &str) -> Vec<String> {
    let mut places = Vec::new();
    let mut level = vec![(Vec::<String>::new(), top.clone())];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (path, message) in level {
            for field in message.fields() {
                let Kind::Message(inner) = field.kind() else { continue };
                let mut path = path.clone();
                path.push(field.name().to_owned());
                let inner = match field.is_map().then(|| inner.map_entry_value_field().kind()) {
                    None => inner,
                    Some(Kind::Message(value)) => {
                        path.push("key: \"...\" value".to_owned());
                        value
                    }
                    Some(_) => continue,
                };
                if inner.get_field_by_name(name).is_some() {
                    places.push(in_braces(&path));
                }
                next.push((path, inner));
            }
        }
        level = next;
    }
    places
}

/// Formats a path as `dynamic_batching { default_queue_policy { ... } }`.
fn in_braces(path: &[String]) -> String {
    format!("`{} {{ ... {}`", path.join(" { "), vec!["}"; path.len()].join(" "))
}

pub(crate) fn enum_hint(name: &str, kind: &EnumDescriptor) -> Option<String> {
    let values = kind.values().map(|v| v.name().to_owned()).collect::<Vec<_>>();
    near_value(name, kind).or_else(|| listing_hint("values", &values))
}

/// Suggests a value that could be meant.
pub(crate) fn near_value(name: &str, kind: &EnumDescriptor) -> Option<String> {
    let values = kind.values().map(|v| v.name().to_owned()).collect::<Vec<_>>();
    let upper = name.trim_matches(['"', '\'']).to_ascii_uppercase();
    let bare = upper.strip_prefix("TYPE_").unwrap_or(&upper);
    let synonym =
        VALUE_SYNONYMS.iter().find(|(from, to)| *from == bare && values.iter().any(|v| v == to));
    if let Some((_, to)) = synonym {
        return Some(format!("did you mean `{to}`?"));
    }
    let suffix = format!("_{upper}");
    if let Some(value) = values.iter().find(|v| **v == upper || v.ends_with(&suffix)) {
        return Some(format!("did you mean `{value}`?"));
    }
    nearest_hint(&upper, &values)
}

/// Suggests a message in place of `found`, with the only field whose value `found` could be.
pub(crate) fn message_hint(name: &str, message: &MessageDescriptor, found: &str) -> String {
    let plain = found.trim_matches(['"', '\'']);
    let mut scalars = message.fields().filter(|f| !matches!(f.kind(), Kind::Message(_)));
    let inside = match (message.get_field_by_name(plain), scalars.next(), scalars.next()) {
        (Some(field), ..) if matches!(field.kind(), Kind::Message(_)) => {
            format!("{plain} {{ ... }}")
        }
        (_, Some(only), None) if matches!(only.kind(), Kind::String) => {
            format!("{}: \"{plain}\"", only.name())
        }
        (_, Some(only), None) if fits(&only.kind(), found) && message.fields().len() == 1 => {
            format!("{}: {found}", only.name())
        }
        _ if message.fields().len() == 0 => return format!("write `{name} {{ }}`"),
        _ => "...".to_owned(),
    };
    let choices = message.fields().filter(|field| field.containing_oneof().is_some());
    let choices: Vec<_> = choices.map(|field| format!("`{}`", field.name())).collect();
    let one_of = match inside.as_str() {
        "..." if !choices.is_empty() => format!(", with one of {} in it", choices.join(", ")),
        _ => String::new(),
    };
    format!("`{name}` is a message: write `{name} {{ {inside} }}`{one_of}")
}

/// Suggests a message in place of a list.
pub(crate) fn list_hint(name: &str, message: &MessageDescriptor) -> String {
    let mut fields = message.fields();
    match (fields.next(), fields.next()) {
        (Some(only), None) if only.is_list() => {
            format!("`{name}` is a message: write `{name} {{ {}: [ ... ] }}`", only.name())
        }
        _ => format!("`{name}` takes one message, not a list"),
    }
}

/// Returns whether a value of this kind can have this form.
fn fits(kind: &Kind, found: &str) -> bool {
    match kind {
        Kind::Bool => matches!(found, "true" | "false"),
        _ => found.starts_with(|c: char| c.is_ascii_digit()),
    }
}

/// Returns whether the text begins with a quote of word processors or web pages that is not a plain quote.
pub(crate) fn is_curly_quote(text: &str) -> bool {
    text.starts_with([
        '\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{ab}', '\u{bb}',
    ])
}

pub(crate) const CURLY_QUOTES: &str = "these are curly quotes: write straight ones, `\"` or `'`";

fn listing_hint(what: &str, names: &[String]) -> Option<String> {
    let quoted = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>();
    (!quoted.is_empty()).then(|| format!("known {what}: {}", quoted.join(", ")))
}

/// Suggests the closest names, or `None` when no name is near.
fn nearest_hint(name: &str, candidates: &[String]) -> Option<String> {
    let near = suggest::nearest(name, candidates.iter().map(String::as_str));
    let quoted = near.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}
