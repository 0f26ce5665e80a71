//! Where in a configuration each message of the schema stands.

use prost_reflect::{Kind, MessageDescriptor};

/// A message of the schema.
pub(super) struct Place {
    pub message: MessageDescriptor,
    /// The fields that are such a message, from the top on; the top itself is the empty path.
    pub paths: Vec<String>,
}

impl Place {
    /// The name of the message without its package.
    pub(super) fn message_name(&self) -> &str {
        let (name, package) = (self.message.full_name(), self.message.package_name());
        name.strip_prefix(package).map_or(name, |rest| rest.trim_start_matches('.'))
    }
}

/// All messages of a configuration, each once, with all places where it stands. An entry of a map stands where the map does.
pub(super) fn places(root: &MessageDescriptor) -> Vec<Place> {
    let mut found = Vec::new();
    visit(root, String::new(), &mut found);
    found
}

/// No message of the schema holds itself, so that this comes to an end.
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
