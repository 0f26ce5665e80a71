//! "Did you mean": the nearest known names to an unknown one.

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

/// Longest name worth comparing: the comparison takes time in the square of it.
const LONGEST: usize = 64;

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

/// The closest names, all at the same distance, or `None` when nothing is near.
fn nearest_hint(name: &str, candidates: &[String]) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.chars().count() / 3).clamp(1, 3);
    let distances =
        candidates.iter().map(|c| distance(&name.to_ascii_lowercase(), &c.to_ascii_lowercase()));
    let distances = distances.collect::<Vec<_>>();
    let best = *distances.iter().min()?;
    if best > limit {
        return None;
    }
    let near = candidates.iter().zip(&distances).filter(|&(_, d)| *d == best).take(3);
    let near = near.map(|(c, _)| format!("`{c}`")).collect::<Vec<_>>();
    Some(format!("did you mean {}?", near.join(" or ")))
}

/// Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let a = a.chars().collect::<Vec<_>>();
    let b = b.chars().collect::<Vec<_>>();
    let width = b.len() + 1;
    let mut before = vec![0; width];
    let mut previous = (0..width).collect::<Vec<_>>();
    for (i, &x) in a.iter().enumerate() {
        let mut current = vec![i + 1; width];
        for (j, &y) in b.iter().enumerate() {
            let replaced = previous[j] + usize::from(x != y);
            let mut best = replaced.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            current[j + 1] = best;
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let cases = [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("dim", "dims", 1),
            ("knid", "kind", 1),
            ("ab", "xy", 2),
        ];
        for (a, b, expected) in cases {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }
}
