//! Names in a configuration that the model does not have.

use std::collections::BTreeSet;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Error, suggest};

/// Returns Triton's error for the name of an input or output (`what`) that the model does not have.
pub fn unexpected<'a>(
    what: &'static str,
    name: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> Error {
    let names: BTreeSet<&str> = allowed.into_iter().collect();
    let text =
        format!("unexpected inference {what} '{name}', allowed {what}s are: {}", listed(&names));
    // Every name is near to a name of one letter.
    let may_be_near = name.chars().count() > 1;
    let near = suggest::nearest(name, names.iter().copied().filter(|_| may_be_near));
    let found = Diagnostic::error(&*text).about(FieldPath::from(what).named(name).field("name"));
    Error::invalid_arg(text).with_source(match near.first() {
        Some(near) => found.with_advice(format!("did you mean '{near}'?")),
        None => found.with_advice(format!(
            "write the {what}s as the model names them, and remove what it does not have"
        )),
    })
}

/// Returns names for an error text. A model's file may have many names of any length.
pub fn listed(names: &BTreeSet<&str>) -> String {
    const MOST: usize = 30;
    let mut listed: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| name.chars().flat_map(char::escape_debug).take(200).collect())
        .collect();
    if let Some(more) = names.len().checked_sub(MOST).filter(|&more| more > 0) {
        listed.push(format!("and {more} more"));
    }
    listed.join(", ")
}
