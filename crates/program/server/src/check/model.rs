//! The completed configuration of one model.

use std::{fs, path::Path, sync::Arc};

use galatea_config::{RawModelConfig, to_text};
use galatea_engine::{RepositoryRoot, SingleModelRoot, complete};
use galatea_remote_repository::parse_address;
use galatea_serve::{RemoteRepositories, model_path};
use galatea_types::{Environment, Error, Result};

use super::flags::CheckFlags;

/// Returns the configuration as text; comments name the missing facts. `path`: a model's folder, file or address.
pub(super) fn completed(
    path: &Path,
    flags: &CheckFlags,
    environment: &Environment,
) -> Result<String> {
    if let Some(address) = path.to_str().filter(|text| text.contains("://")) {
        let (root, name) = at_address(address, flags, environment)?;
        let (raw, unknown) =
            complete(&flags.options(vec![root]), flags.inspectors(environment), &name)?;
        return Ok(text(&raw, unknown.as_deref(), false));
    }
    let is_folder = path.is_dir() && !model_path::is_saved_model(path);
    let root = match is_folder {
        true => SingleModelRoot::of_folder(path, path, name_of(path)?),
        false => model_path::open(path).map_err(|error| Error::invalid_arg(error.to_string()))?,
    };
    let names = root.model_names().unwrap_or_default();
    let name = names.first().ok_or_else(|| Error::invalid_arg("there is no model"))?;
    let (raw, unknown) = complete(&flags.options(vec![root]), flags.inspectors(environment), name)?;
    Ok(text(&raw, unknown.as_deref(), !is_folder))
}

/// Returns the repository of a model's address, and its name there. In an object store that is the last part of the address;
/// hubs and archives hold only one model.
fn at_address(
    given: &str,
    flags: &CheckFlags,
    environment: &Environment,
) -> Result<(Arc<dyn RepositoryRoot>, String)> {
    let mut remote = RemoteRepositories::new(environment, &flags.cache);
    let mut open = |address: &str| match remote.open(Path::new(address)) {
        Some(root) => root.map_err(|error| Error::invalid_arg(error.to_string())),
        None => Err(Error::invalid_arg(format!(
            "'{given}' is not the address of a model: those end in the name of its folder, s3://BUCKET/PATH/MODEL"
        ))),
    };
    if parse_address(given).is_some() {
        let (repository, name) = given.trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        return Ok((open(repository.trim_end_matches('/'))?, name.to_owned()));
    }
    let root = open(given)?;
    root.check()?;
    let names = root.model_names().map_err(|error| Error::unavailable(error.to_string()))?;
    match &names[..] {
        [name] => Ok((root, name.clone())),
        _ => Err(Error::invalid_arg(format!(
            "there are {} models in '{given}', and `galatea config` prints the configuration of one",
            names.len()
        ))),
    }
}

/// Returns the name of the folder itself, even if it is given as `.` or by a link.
fn name_of(folder: &Path) -> Result<String> {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let given = folder.file_name().or(real.file_name()).and_then(|name| name.to_str());
    given.map(str::to_owned).ok_or_else(|| Error::invalid_arg("the folder of a model has a name"))
}

fn text(raw: &RawModelConfig, unknown: Option<&str>, is_file: bool) -> String {
    let mut text = String::new();
    if is_file {
        let (name, file) = (&raw.name, &raw.default_model_filename);
        text.push_str(&format!("# As {name}/config.pbtxt; the model itself is {name}/1/{file}.\n"));
    }
    if let Some(unknown) = unknown {
        text.push_str(&format!("# Not all of it can be known here: {unknown}.\n"));
    }
    text.push_str(&to_text(raw));
    for (field, is_missing) in [("input", raw.input.is_empty()), ("output", raw.output.is_empty())]
    {
        if is_missing && unknown.is_none() && raw.platform != "ensemble" {
            text.push_str(&format!(
                "# The file does not say its {field}s; describe each one:\n\
                 # {field} [ {{ name: \"{}__0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n",
                field.to_uppercase()
            ));
        }
    }
    text
}
