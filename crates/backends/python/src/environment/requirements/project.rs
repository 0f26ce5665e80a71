//! The requirements in a `pyproject.toml`.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{
    error::{ProjectError, RequirementsError},
    python::range,
};
use crate::environment::version::VersionRange;

/// `dependencies` and `requires-python` of `[project]`.
pub(super) struct Project {
    pub dependencies: Vec<String>,
    pub python: Option<VersionRange>,
}

/// `None` when the file has no requirements, e.g. only the settings of a formatter.
pub(super) fn parse(file: &Path, text: &str) -> Result<Option<Project>, RequirementsError> {
    let wrong = |reason| RequirementsError::Project { file: file.to_owned(), reason };
    let document = DeTable::parse(text);
    let document = document.map_err(|e| wrong(ProjectError::Syntax(e.message().to_owned())))?;
    let Some(project) = document.get_ref().get("project") else { return Ok(None) };
    let project = project.get_ref().as_table().ok_or_else(|| wrong(ProjectError::NoTable))?;
    let python = match project.get("requires-python").map(|value| value.get_ref()) {
        None => None,
        Some(DeValue::String(text)) => Some(range(file, "requires-python", text)?),
        Some(_) => return Err(wrong(ProjectError::PythonIsNoText)),
    };
    let dependencies = dependencies(project).map_err(wrong)?;
    if python.is_none() && dependencies.is_none() {
        return Ok(None);
    }
    Ok(Some(Project { dependencies: dependencies.unwrap_or_default(), python }))
}

fn dependencies(project: &DeTable<'_>) -> Result<Option<Vec<String>>, ProjectError> {
    let is_dynamic = project.get("dynamic").and_then(|value| value.get_ref().as_array());
    if is_dynamic.is_some_and(|a| a.iter().any(|v| v.get_ref().as_str() == Some("dependencies"))) {
        return Err(ProjectError::DynamicDependencies);
    }
    let Some(value) = project.get("dependencies") else { return Ok(None) };
    let list = value.get_ref().as_array().ok_or(ProjectError::NoList)?;
    let texts = list.iter().map(|value| match value.get_ref().as_str().map(str::trim) {
        // pip would take it for an option.
        Some(text) if !text.is_empty() && !text.starts_with('-') => Ok(text.to_owned()),
        Some(text) => Err(ProjectError::NoRequirement(text.to_owned())),
        None => Err(ProjectError::DependencyIsNoText),
    });
    texts.collect::<Result<_, _>>().map(Some)
}
