//! Operations that a model wants to run once, after it is loaded: `TF_INIT_OPS_FILE`.

use std::{fs::File, io::Read, path::Path};

use galatea_backend::LoadContext;
use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error, Result};
use serde_json::Value;

use crate::settings::{self, INIT_OPS_FILE};

const LARGEST: u64 = 1 << 20;

/// Reads their names, in the order in which they run.
pub(crate) fn read(context: &LoadContext) -> Result<Vec<String>> {
    let Some(name) = settings::name(context.config.parameters(), INIT_OPS_FILE) else {
        return Ok(Vec::new());
    };
    let at = |dir: &Path| context.paths.resolve(INIT_OPS_FILE, dir, name);
    let (of_version, of_model) = (at(&context.version_dir)?, at(&context.model_dir)?);
    let path = if of_version.is_file() { of_version } else { of_model };
    let text = read_text(&path).map_err(|error| wrong(context, name, &error.to_string()))?;
    parse(&text).ok_or_else(|| {
        wrong(context, name, "it is not of the form {\"init_ops\": [\"name\", ...]}")
    })
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let names = value.get("init_ops")?.as_array()?;
    names.iter().map(|name| name.as_str().map(ToOwned::to_owned)).collect()
}

fn wrong(context: &LoadContext, name: &str, reason: &str) -> Error {
    let model = context.config.name();
    Diagnostic::error(format!(
        "unable to load model '{model}': the file '{name}' of {INIT_OPS_FILE} cannot be used: {reason}"
    ))
    .about(FieldPath::from("parameters").named(INIT_OPS_FILE))
    .with_advice("put the file in the version folder or the model's folder")
    .into_error(Code::InvalidArg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_operations_are_read_in_order() {
        assert_eq!(
            parse(r#"{"init_ops": ["b", "a"]}"#),
            Some(vec!["b".to_owned(), "a".to_owned()])
        );
        for wrong in ["", "[]", "{}", r#"{"init_ops": "a"}"#, r#"{"init_ops": [1]}"#] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
