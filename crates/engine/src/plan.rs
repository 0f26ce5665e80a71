//! From a model's folder (or what a load request brings in its place) to what is to be loaded.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use galatea_backend::{Backend, CompletionContext};
use galatea_config::{CheckContext, ModelConfig, NormalizeContext, RawModelConfig, VersionPolicy};
use galatea_proto::inference::{model_config::SchedulingChoice, model_instance_group::Kind};
use galatea_types::{Error, Result};

use crate::{Engine, LoadOverrides, repository::ModelFolder};

/// A model as it is to be loaded: checked configuration, and which versions.
pub(crate) struct LoadPlan {
    pub folder: ModelFolder,
    pub config: Arc<ModelConfig>,
    pub versions: Vec<i64>,
    /// Why the backend could not be opened, or could not complete the configuration: every version fails to
    /// load with it.
    pub backend_failure: Option<Error>,
    /// Files a load request brought along: they live as long as the load takes.
    _files: Option<tempfile::TempDir>,
}

impl LoadPlan {
    pub fn make(name: &str, overrides: &LoadOverrides, engine: &Engine) -> Result<Self> {
        let files = write_override_files(overrides)?;
        let folder = match &files {
            Some(dir) => ModelFolder::open(name, dir.path().to_owned())?,
            None => engine.repository.locate(name)?.ok_or_else(|| {
                Error::not_found(format!("no folder named '{name}' in the model repositories"))
            })?,
        };
        let raw = match &overrides.config {
            Some(json) => galatea_config::parse_json(json)?,
            None => read_config(&folder, engine.options().auto_completes_config)?,
        };
        let (config, backend_failure) = complete(raw, &folder, engine)?;
        let versions = choose_versions(config.version_policy(), &folder);
        Ok(Self { folder, config: Arc::new(config), versions, backend_failure, _files: files })
    }
}

/// The models an ensemble's steps run on; empty for every other model, and where the configuration cannot be
/// read: its load tells why.
pub(crate) fn models_of_steps(
    name: &str,
    overrides: &LoadOverrides,
    engine: &Engine,
) -> BTreeSet<String> {
    let raw = match (&overrides.config, engine.repository.locate(name)) {
        (Some(json), _) => galatea_config::parse_json(json).ok(),
        (None, Ok(Some(folder))) => read_config(&folder, true).ok(),
        _ => None,
    };
    let scheduling = raw.and_then(|raw| raw.scheduling_choice);
    let Some(SchedulingChoice::EnsembleScheduling(ensembling)) = scheduling else {
        return BTreeSet::new();
    };
    ensembling.step.into_iter().map(|step| step.model_name).collect()
}

/// the model's folder is then made of these files only, so a configuration must come with them.
fn write_override_files(overrides: &LoadOverrides) -> Result<Option<tempfile::TempDir>> {
    if overrides.files.is_empty() {
        return Ok(None);
    }
    if overrides.config.is_none() {
        let text = "Load parameter 'config' must be specified for model file override";
        return Err(Error::invalid_arg(text));
    }
    let failed =
        |e: std::io::Error| Error::internal(format!("failed to write override files: {e}"));
    let dir = tempfile::tempdir().map_err(failed)?;
    for (path, content) in &overrides.files {
        let target = dir.path().join(safe_relative(path)?);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(&target, content.host()?).map_err(failed)?;
    }
    Ok(Some(dir))
}

fn safe_relative(path: &str) -> Result<PathBuf> {
    let mut normalized = PathBuf::new();
    let mut escapes = path.is_empty();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => normalized.push(part),
            Component::CurDir => {}
            Component::ParentDir => escapes |= !normalized.pop(),
            Component::RootDir | Component::Prefix(_) => escapes = true,
        }
    }
    if escapes || normalized.as_os_str().is_empty() {
        return Err(Error::invalid_arg(format!(
            "Invalid file parameter '{path}' with normalized path '{}' must stay within model directory.",
            normalized.display()
        )));
    }
    Ok(normalized)
}

fn read_config(folder: &ModelFolder, auto_completes: bool) -> Result<RawModelConfig> {
    let path = folder.dir.join("config.pbtxt");
    let source = match fs::read_to_string(&path) {
        Ok(source) => source,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && auto_completes => {
            return Ok(RawModelConfig::default());
        }
        Err(e) => {
            return Err(Error::invalid_arg(format!("failed to read {}: {e}", path.display())));
        }
    };
    galatea_config::parse_text(&source)
        // Clients read this: the place inside the repository says enough, the server's path is nobody's business.
        .map_err(|e| {
            Error::invalid_arg(e.render(&format!("{}/config.pbtxt", folder.name), &source))
        })
}

/// Fills in what the file leaves out, asks the backend for what only the model knows, and checks the whole.
fn complete(
    raw: RawModelConfig,
    folder: &ModelFolder,
    engine: &Engine,
) -> Result<(ModelConfig, Option<Error>)> {
    let version_files = folder.lowest_version_files();
    let context = NormalizeContext {
        directory_name: &folder.name,
        version_files: &version_files,
        available_gpus: &engine.options().gpus.available,
    };
    let mut raw = galatea_config::resolve_backend(raw, &context)?;
    let mut backend_failure = None;
    if engine.options().auto_completes_config && !raw.backend.is_empty() {
        match engine.loader().backend(&raw.backend) {
            Ok(backend) => match backend_completion(raw.clone(), &*backend, folder, engine) {
                Ok(completed) => raw = completed,
                Err(error) => {
                    return Ok((without_completion(raw, &context, &error, engine)?, Some(error)));
                }
            },
            Err(error) => backend_failure = Some(error),
        }
    }
    Ok((checked(raw, &context, engine)?, backend_failure))
}

/// As far as the configuration goes by itself. One that needs what the backend could not tell is no
/// configuration, and it is still the backend's error that says why.
fn without_completion(
    raw: RawModelConfig,
    context: &NormalizeContext<'_>,
    error: &Error,
    engine: &Engine,
) -> Result<ModelConfig> {
    checked(raw, context, engine).map_err(|_| error.clone())
}

fn checked(
    mut raw: RawModelConfig,
    context: &NormalizeContext<'_>,
    engine: &Engine,
) -> Result<ModelConfig> {
    let gpus = &engine.options().gpus;
    let mut context = *context;
    if !gpus.available.is_empty() && !can_use_gpus(&raw.backend, engine) {
        keep_off_gpus(&mut raw, &gpus.available);
        context.available_gpus = &[];
    }
    let normalized = galatea_config::normalize(raw, &context)?;
    let context = CheckContext {
        directory_name: context.directory_name,
        supports_gpus: true,
        available_gpus: &gpus.available,
        min_compute_capability: gpus.min_compute_capability,
    };
    ModelConfig::check(normalized, &context)
}

/// A backend that cannot be opened says so when the model is loaded.
fn can_use_gpus(backend: &str, engine: &Engine) -> bool {
    engine.loader().backend(backend).map_or(true, |backend| backend.can_use_gpus())
}

/// Groups that ask for GPUs without naming any get the ones there are, as they would have: the backend is to say
/// why it cannot use them, not the check that none was named. All others are filled in as where there are none.
fn keep_off_gpus(raw: &mut RawModelConfig, gpus: &[u32]) {
    for group in raw.instance_group.iter_mut().filter(|group| group.kind() == Kind::Gpu) {
        if group.gpus.is_empty() {
            group.gpus = gpus.iter().filter_map(|&gpu| i32::try_from(gpu).ok()).collect();
        }
    }
}

fn backend_completion(
    raw: RawModelConfig,
    backend: &dyn Backend,
    folder: &ModelFolder,
    engine: &Engine,
) -> Result<RawModelConfig> {
    let Some(&lowest) = folder.versions.first() else { return Ok(raw) };
    let backend_config = engine.loader().settings(&raw.backend);
    let version_dir = folder.version_dir(lowest);
    let context = CompletionContext {
        model_name: &folder.name,
        model_dir: &folder.dir,
        version: lowest,
        version_dir: &version_dir,
        backend_config: &backend_config,
    };
    backend.complete_config(raw, &context)
}

fn choose_versions(policy: &VersionPolicy, folder: &ModelFolder) -> Vec<i64> {
    let all = &folder.versions;
    match policy {
        VersionPolicy::All => all.clone(),
        VersionPolicy::Latest(count) => {
            let skipped = all.len().saturating_sub(usize::try_from(*count).unwrap_or(usize::MAX));
            all.iter().skip(skipped).copied().collect()
        }
        VersionPolicy::Specific(wanted) => {
            for version in wanted.iter().filter(|v| !all.contains(v)) {
                log::error!(
                    "version {version} is specified for model '{}', but the version directory is not present",
                    folder.name
                );
            }
            all.iter().filter(|v| wanted.contains(v)).copied().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_by_policy() {
        let folder = ModelFolder { name: "m".into(), dir: PathBuf::new(), versions: vec![1, 2, 5] };
        for (policy, expected) in [
            (VersionPolicy::All, vec![1, 2, 5]),
            (VersionPolicy::Latest(1), vec![5]),
            (VersionPolicy::Latest(2), vec![2, 5]),
            (VersionPolicy::Latest(9), vec![1, 2, 5]),
            (VersionPolicy::Specific(vec![5, 1, 7]), vec![1, 5]),
        ] {
            assert_eq!(choose_versions(&policy, &folder), expected, "{policy:?}");
        }
    }

    #[test]
    fn override_paths_stay_inside() {
        for path in ["1/model.onnx", "./a/../1/model.onnx"] {
            assert_eq!(safe_relative(path).expect("inside"), Path::new("1/model.onnx"));
        }
        for path in ["", "..", "../x", "/etc/x", "a/../../x", "a/.."] {
            let error = safe_relative(path).expect_err(path);
            assert!(error.message().contains("must stay within model directory"), "{error}");
        }
    }
}
