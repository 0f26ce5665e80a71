//! "Did you mean": the nearest known names to an unknown one.

use galatea_types::suggest;
use prost_reflect::{EnumDescriptor, MessageDescriptor};

/// Names people bring from other tools, where spelling alone would suggest something else.
const DATA_TYPE_SYNONYMS: [(&str, &str); 7] = [
    ("BYTES", "TYPE_STRING"),
    ("FLOAT", "TYPE_FP32"),
    ("FLOAT16", "TYPE_FP16"),
    ("FLOAT32", "TYPE_FP32"),
    ("FLOAT64", "TYPE_FP64"),
    ("DOUBLE", "TYPE_FP64"),
    ("HALF", "TYPE_FP16"),
];

pub(crate) fn field_hint(name: &str, message: &MessageDescriptor) -> Option<String> {
    let fields = message.fields().map(|f| f.name().to_owned()).collect::<Vec<_>>();
    nearest_hint(name, &fields).or_else(|| listing_hint("fields", &fields))
}

pub(crate) fn enum_hint(name: &str, kind: &EnumDescriptor) -> Option<String> {
    let values = kind.values().map(|v| v.name().to_owned()).collect::<Vec<_>>();
    let upper = name.trim_matches(['"', '\'']).to_ascii_uppercase();
    let bare = upper.strip_prefix("TYPE_").unwrap_or(&upper);
    let synonym = DATA_TYPE_SYNONYMS
        .iter()
        .find(|(from, to)| *from == bare && values.iter().any(|v| v == to));
    if let Some((_, to)) = synonym {
        return Some(format!("did you mean `{to}`?"));
    }
    let suffix = format!("_{upper}");
    if let Some(value) = values.iter().find(|v| **v == upper || v.ends_with(&suffix)) {
        return Some(format!("did you mean `{value}`?"));
    }
    nearest_hint(&upper, &values).or_else(|| listing_hint("values", &values))
}

fn listing_hint(what: &str, names: &[String]) -> Option<String> {
    let quoted = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>();
    (!quoted.is_empty()).then(|| format!("known {what}: {}", quoted.join(", ")))
}

/// The closest names, or `None` when nothing is near.
fn nearest_hint(name: &str, candidates: &[String]) -> Option<String> {
    let near = suggest::nearest(name, candidates.iter().map(String::as_str));
    let quoted = near.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}
