//! Writes `docs/config.md`: every field of a configuration, from the schema, the texts about its fields, and the table of fields
//! without effect.

mod entry;
mod places;

use std::fmt::Write;

use prost_reflect::{Cardinality, FieldDescriptor, Kind};

use self::{
    entry::{Field, FieldSupport, SECTIONS, Section},
    places::{Place, places},
};
use crate::{schema, support};

const HEAD: &str = "\
# Configuration of a model

Made from the program's own tables by `galatea manual config`; a test compares. A model's folder may have a file
`config.pbtxt` in the text format of protobuf, as in Triton; what it leaves out is completed from the model's file where that
tells. `galatea config MODEL` prints the whole configuration of a model, `galatea check` finds mistakes
([check.md](check.md)), and how messages, lists and maps are written is [below](#how-it-is-written).

The last column says what this server does with a field:

- **works**: it acts on it as the meaning says.
- **warning**: the model loads, the field has no effect, and the log says so.
- **no effect**: the model loads, and nothing depends on the field.
- **refused**: a model that sets it does not load.

The differences from Triton are in [compat.md](compat.md).
";

const TAIL: &str = "
## Data types

`TYPE_BOOL`, `TYPE_UINT8`, `TYPE_UINT16`, `TYPE_UINT32`, `TYPE_UINT64`, `TYPE_INT8`, `TYPE_INT16`, `TYPE_INT32`, `TYPE_INT64`,
`TYPE_FP16`, `TYPE_FP32`, `TYPE_FP64`, `TYPE_BF16`, and `TYPE_STRING`, whose elements are bytes of any length. Requests name
them without `TYPE_`, and `TYPE_STRING` as `BYTES`.

## How it is written

```
max_batch_size: 8                                        # a value
input [                                                  # a list of messages
  { name: \"x\" data_type: TYPE_FP32 dims: [ 3, -1 ] }
]
dynamic_batching { max_queue_delay_microseconds: 100 }   # a message
parameters { key: \"a\" value { string_value: \"b\" } }      # an entry of a map
```

A comment begins with `#`. A list of messages may also be written as one block for each.
";

/// Returns the reference of all fields of a configuration as Markdown.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    let all = schema::model_config().map(|root| places(&root)).unwrap_or_default();
    for section in SECTIONS.iter() {
        if let Some(place) = all.iter().find(|place| place.message_name() == section.message) {
            write_section(&mut page, section, place, &all);
        }
    }
    page.push_str(TAIL);
    page
}

fn write_section(page: &mut String, section: &Section, place: &Place, all: &[Place]) {
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {}\n", heading(place));
    if !section.about.is_empty() {
        let _ = write!(page, "\n{}\n", section.about);
    }
    if section.fields.is_empty() {
        return;
    }
    page.push_str("\n| field | type | left out | what it means | here |\n|---|---|---|---|---|\n");
    for field in &section.fields {
        if let Some(schema) = place.message.get_field_by_name(field.name) {
            let Field { name, default, meaning, .. } = field;
            let (kind, here) = (type_of(&schema, all), here(field, &place.paths));
            let _ = writeln!(page, "| `{name}` | {kind} | {default} | {meaning} | {here} |");
        }
    }
}

/// Returns the sections of a configuration that are such a message.
fn heading(place: &Place) -> String {
    match place.paths.as_slice() {
        [path] if path.is_empty() => "The model".to_owned(),
        paths => paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Returns the link target of a heading.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase().replace(' ', "-");
    lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect()
}

/// Returns the type in words, with a link to the section that has the parts of a message.
fn type_of(field: &FieldDescriptor, all: &[Place]) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let key = scalar(&entry.map_entry_key_field().kind(), all);
            format!("map from {key} to {}", scalar(&entry.map_entry_value_field().kind(), all))
        }
        kind if field.cardinality() == Cardinality::Repeated => {
            format!("list of {}", scalar(&kind, all))
        }
        kind => scalar(&kind, all),
    }
}

fn scalar(kind: &Kind, all: &[Place]) -> String {
    match kind {
        Kind::Message(message) => {
            let place = all.iter().find(|place| place.message == *message);
            let heading = place.map(heading).unwrap_or_default();
            format!("[message](#{})", anchor(&heading))
        }
        Kind::Enum(values) if values.name() == "DataType" => "[data type](#data-types)".to_owned(),
        Kind::Enum(values) => {
            let names: Vec<String> = values.values().map(|v| format!("`{}`", v.name())).collect();
            names.join(", ")
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Returns the support in this server of a field at these paths.
fn here(field: &Field, sections: &[String]) -> String {
    let path = |section: &String| match section.is_empty() {
        true => field.name.to_owned(),
        false => format!("{section}.{}", field.name),
    };
    let paths: Vec<String> = sections.iter().map(path).collect();
    let own = match field.here {
        FieldSupport::Works("") => "works".to_owned(),
        FieldSupport::Works(note) => format!("works: {note}"),
        FieldSupport::NoEffect(why) => format!("no effect: {why}"),
        FieldSupport::Refused(why) => format!("**refused**: {why}"),
        FieldSupport::ByTable => return by_table(&paths),
    };
    let rows = paths.iter().flat_map(|path| support::treatments(path)).map(|row| treated(&row));
    [own].into_iter().chain(rows).collect::<Vec<_>>().join(". ")
}

/// Returns the rows of the field itself, or else of its section.
fn by_table(paths: &[String]) -> String {
    let Some(path) = paths.first() else { return String::new() };
    let rows: Vec<String> = support::treatments(path).map(|row| treated(&row)).collect();
    if !rows.is_empty() {
        return rows.join(". ");
    }
    let above = ancestors(path).find(|above| support::treatments(above).next().is_some());
    above.map(|above| format!("as `{above}`")).unwrap_or_default()
}

/// Returns the sections around a path, the nearest first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').map(|(end, _)| &path[..end]).collect::<Vec<_>>().into_iter().rev()
}

fn treated(row: &support::FieldTreatment) -> String {
    let space = if row.condition.is_empty() { "" } else { " " };
    format!("**warning**{space}{}: {}", row.condition, row.sentence)
}

#[cfg(test)]
mod tests;
