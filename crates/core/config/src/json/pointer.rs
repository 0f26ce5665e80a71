//! Finds the place of a field in a configuration in JSON.

use serde_json::Value as Json;

use crate::{FieldPath, Step, schema::MAX_SOURCE_SIZE};

/// Returns the JSON pointer of the field, or of the closest part around it; `None` when the text has no part of it.
pub(crate) fn pointer(json: &str, path: &FieldPath) -> Option<String> {
    if json.len() > MAX_SOURCE_SIZE {
        return None;
    }
    let document: Json = serde_json::from_str(json).ok()?;
    let (mut value, mut pointer) = (&document, String::new());
    for step in path.steps() {
        let Some((name, inner)) = child(value, step) else { break };
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        value = inner;
    }
    (!pointer.is_empty()).then_some(pointer)
}

fn child<'a>(value: &'a Json, step: &Step) -> Option<(String, &'a Json)> {
    match (value, step) {
        (Json::Object(members), Step::Field(name)) => {
            let spelled = members.iter().find(|(key, _)| *key == name || is_camel_case(key, name));
            spelled.map(|(key, inner)| (key.clone(), inner))
        }
        (Json::Object(members), Step::Named(name)) => Some((name.clone(), members.get(name)?)),
        (Json::Array(elements), Step::Index(index)) => {
            Some((index.to_string(), elements.get(*index)?))
        }
        (Json::Array(elements), Step::Named(name)) => {
            let is_it = |element: &Json| element.get("name").and_then(Json::as_str) == Some(name);
            let index = elements.iter().position(is_it)?;
            Some((index.to_string(), elements.get(index)?))
        }
        _ => None,
    }
}

/// Returns whether `key` is the camel-case form of the field `name`.
fn is_camel_case(key: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    !key.contains('_') && plain(key) == plain(name)
}
