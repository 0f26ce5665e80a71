//! Finds the places of each schema message in a configuration.

use prost_reflect::{Kind, MessageDescriptor};

/// A message of the schema.
pub(super) struct Place {
    pub message: MessageDescriptor,
    /// The fields that are such a message, from the top; the top itself is the empty path.
    pub paths: Vec<String>,
}

impl Place {
    /// Returns the name of the message without its package.
    pub(super) fn message_name(&self) -> &str {
        let (name, package) = (self.message.full_name(), self.message.package_name());
        name.strip_prefix(package).map_or(name, |rest| rest.trim_start_matches('.'))
    }
}

/// Returns all messages of a configuration, each once, with all its places. An entry of a map has the place of the map.
pub(super) fn places(root: &MessageDescriptor) -> Vec<Place> {
    let mut found = Vec::new();
    visit(root, String::new(), &mut found);
    found
}

/// Visits a message and its parts. The recursion ends because no message of the schema contains itself.
fn visit(message: &MessageDescriptor, path: String, found: &mut Vec<Place>) {
    for field in message.fields() {
        let inner = match path.is_empty() {
            true => field.name().to_owned(),
            false => format!("{path}.{}", field.name()),
        };
        match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                if let Kind::Message(value) = entry.map_entry_value_field().kind() {
                    visit(&value, inner, found);
                }
            }
            Kind::Message(part) => visit(&part, inner, found),
            _ => {}
        }
    }
    match found.iter_mut().find(|place| place.message == *message) {
        Some(place) => place.paths.push(path),
        None => found.push(Place { message: message.clone(), paths: vec![path] }),
    }
}
