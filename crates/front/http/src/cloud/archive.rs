//! Finds the model in a folder that SageMaker has unpacked.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use galatea_engine::{LocalRoot, RepositoryRoot};
use galatea_types::Error;

/// The file that makes a folder a model.
const CONFIG: &str = "config.pbtxt";
const ENSEMBLE: &str = "ensemble";

#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// The error does not reveal if anything exists at such a path.
    #[error("failed to register '{url}', a model must be in a folder below '{models}'")]
    Outside { url: String, models: String },
    #[error("failed to register '{url}', repository not found")]
    Missing { url: String },
    #[error("failed to load '{model}', failed to poll from model repository")]
    Empty { model: String },
}

impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        Self::invalid_arg(error.to_string())
    }
}

/// Returns the repository for a URL, with its model under the name `model`. A folder with a configuration is the model
/// itself, and its parent the repository. Any other folder contains the model: its ensemble, or else its first.
pub(super) fn find(
    models: &Path,
    url: &str,
    model: &str,
) -> Result<Arc<dyn RepositoryRoot>, ArchiveError> {
    let folder = folder_below(models, url)?;
    let (place, name) = match folder.join(CONFIG).exists() {
        true => as_model(models, url, &folder)?,
        false => {
            let name = model_in(&folder);
            (&*folder, name.ok_or_else(|| ArchiveError::Empty { model: model.to_owned() })?)
        }
    };
    Ok(LocalRoot::renaming(place, name, model))
}

/// Returns a folder below that of all models, as written. Links must not lead out of it.
fn folder_below(models: &Path, url: &str) -> Result<PathBuf, ArchiveError> {
    let outside = || outside(models, url);
    let folder = normalized(Path::new(url)).ok_or_else(outside)?;
    if !is_below(&folder, models) {
        return Err(outside());
    }
    let missing = |_| ArchiveError::Missing { url: url.to_owned() };
    let real = fs::canonicalize(&folder).map_err(missing)?;
    let real_models = fs::canonicalize(models).map_err(missing)?;
    if !is_below(&real, &real_models) {
        return Err(outside());
    }
    match real.is_dir() {
        true => Ok(folder),
        false => Err(ArchiveError::Missing { url: url.to_owned() }),
    }
}

fn outside(models: &Path, url: &str) -> ArchiveError {
    ArchiveError::Outside { url: url.to_owned(), models: models.display().to_string() }
}

fn is_below(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && path != folder
}

/// Returns an absolute path without `.` and `..`, by its text alone.
fn normalized(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::RootDir | Component::Normal(_) => result.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            Component::Prefix(_) => return None,
        }
    }
    result.is_absolute().then_some(result)
}

/// Returns the parent folder and the name of the model in it. The parent must not be the folder of all models, or each
/// of them would be in this repository.
fn as_model<'p>(
    models: &Path,
    url: &str,
    folder: &'p Path,
) -> Result<(&'p Path, String), ArchiveError> {
    let name = folder.file_name().and_then(|name| name.to_str());
    match (folder.parent(), name) {
        (Some(above), Some(name)) if is_below(above, models) => Ok((above, name.to_owned())),
        _ => Err(outside(models, url)),
    }
}

/// Returns the ensemble among the folders, or else the first of them by name. Links are ignored.
fn model_in(folder: &Path) -> Option<String> {
    let root = LocalRoot::at(folder);
    let is_folder =
        |name: &String| fs::symlink_metadata(folder.join(name)).is_ok_and(|found| found.is_dir());
    let mut names: Vec<String> = root.model_names().ok()?.into_iter().filter(is_folder).collect();
    names.sort();
    let is_ensemble = |name: &&String| {
        let text = root.read_text(name, CONFIG).ok();
        let config = text.and_then(|text| galatea_config::parse_text(&text).ok());
        config.is_some_and(|config| config.platform == ENSEMBLE)
    };
    let ensemble = names.iter().find(is_ensemble).cloned();
    if ensemble.is_none() && names.len() > 1 {
        log::warn!(
            "'{}' holds several models and no ensemble: the first is served",
            folder.display()
        );
    }
    ensemble.or_else(|| names.into_iter().next())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(folder: &Path, config: Option<&str>) {
        fs::create_dir_all(folder.join("1")).expect("folder");
        if let Some(config) = config {
            fs::write(folder.join(CONFIG), config).expect("written");
        }
    }

    #[test]
    fn a_model_is_found_in_the_folder_or_one_level_below() {
        let models = tempfile::tempdir().expect("folder");
        let path = models.path();
        write(&path.join("a/model"), Some(""));
        write(&path.join("b/model/inner"), None);
        write(&path.join("c/model/ens"), Some("platform: \"ensemble\""));
        write(&path.join("c/model/alone"), Some("backend: \"python\""));
        fs::create_dir_all(path.join("empty/model")).expect("folder");
        let found = |tail: &str| {
            let url = path.join(tail);
            let root =
                find(path, &url.to_string_lossy(), "m").map_err(|error| error.to_string())?;
            let lease = root.lease("m").expect("there");
            let within = lease.path().strip_prefix(path).expect("below").display().to_string();
            Ok::<_, String>((root.place(), within))
        };
        let at = |place: &str| path.join(place).display().to_string();
        assert_eq!(found("a/model"), Ok((at("a"), "a/model".to_owned())));
        assert_eq!(found("b/model"), Ok((at("b/model"), "b/model/inner".to_owned())));
        assert_eq!(found("c/model"), Ok((at("c/model"), "c/model/ens".to_owned())));
        assert_eq!(found("c/../c/./model"), Ok((at("c/model"), "c/model/ens".to_owned())));
        let text = "failed to load 'm', failed to poll from model repository";
        assert_eq!(found("empty/model"), Err(text.to_owned()));
        let text = format!("failed to register '{}', repository not found", at("none/model"));
        assert_eq!(found("none/model"), Err(text));
    }

    #[test]
    fn paths_outside_the_models_folder_are_refused() {
        let host = tempfile::tempdir().expect("folder");
        let models = host.path().join("models");
        write(&models.join("a/model"), Some(""));
        write(&models.join("flat"), Some(""));
        write(&host.path().join("secret/model"), Some(""));
        symlink(host.path().join("secret"), models.join("link")).expect("link");
        symlink("/", models.join("all")).expect("link");
        let inside = models.display();
        for url in [
            "",
            ".",
            "model",
            "../secret/model",
            "/",
            "/etc",
            "/proc/self/root",
            "/dev",
            &format!("{inside}"),
            &format!("{inside}/"),
            &format!("{inside}/.."),
            &format!("{inside}/../secret/model"),
            &format!("{inside}/a/../../secret/model"),
            &format!("{inside}/link/model"),
            &format!("{inside}/all/etc"),
            &format!("{inside}x/a"),
            &format!("{inside}/flat"),
        ] {
            let error = find(&models, url, "m").map(drop).expect_err(url);
            assert!(matches!(error, ArchiveError::Outside { .. }), "{url}: {error}");
        }
    }
}
