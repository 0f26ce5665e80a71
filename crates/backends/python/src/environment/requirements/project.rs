//! The requirements in a `pyproject.toml`.

use std::path::Path;

use galatea_types::{Error, Result};
use toml::de::{DeTable, DeValue};

use crate::environment::version::VersionRange;

/// `dependencies` and `requires-python` of `[project]`.
pub(super) struct Project {
    pub dependencies: Vec<String>,
    pub python: Option<VersionRange>,
}

/// Parses the file. Returns `None` if it has no requirements, e.g. only the settings of a formatter.
pub(super) fn parse(file: &Path, text: &str) -> Result<Option<Project>> {
    let wrong =
        |reason: &str| Error::invalid_arg(format!("cannot read '{}': {reason}", file.display()));
    let document = DeTable::parse(text).map_err(|e| wrong(e.message()))?;
    let Some(project) = document.get_ref().get("project") else { return Ok(None) };
    let project = project.get_ref().as_table().ok_or_else(|| wrong("[project] is not a table"))?;
    let python = match project.get("requires-python").map(|value| value.get_ref()) {
        None => None,
        Some(DeValue::String(text)) => Some(VersionRange::of_file(file, "requires-python", text)?),
        Some(_) => return Err(wrong("requires-python is not a string")),
    };
    let dependencies = dependencies(project).map_err(|reason| wrong(&reason))?;
    if python.is_none() && dependencies.is_none() {
        return Ok(None);
    }
    Ok(Some(Project { dependencies: dependencies.unwrap_or_default(), python }))
}

fn dependencies(project: &DeTable<'_>) -> Result<Option<Vec<String>>, String> {
    let is_dynamic = project.get("dynamic").and_then(|value| value.get_ref().as_array());
    if is_dynamic.is_some_and(|a| a.iter().any(|v| v.get_ref().as_str() == Some("dependencies"))) {
        return Err("its dependencies are dynamic; list them in [project], or in a requirements.txt beside it".into());
    }
    let Some(value) = project.get("dependencies") else { return Ok(None) };
    let list = value.get_ref().as_array().ok_or("dependencies is not a list")?;
    let texts = list.iter().map(|value| match value.get_ref().as_str().map(str::trim) {
        // pip would read it as an option.
        Some(text) if !text.is_empty() && !text.starts_with('-') => Ok(text.to_owned()),
        Some(text) => Err(format!("'{text}' in dependencies is not a requirement")),
        None => Err("dependencies has an entry that is not a string".to_owned()),
    });
    texts.collect::<Result<_, _>>().map(Some)
}
