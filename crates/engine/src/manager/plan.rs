//! One model as it is to be loaded.

use std::sync::Arc;

use galatea_backend::PathRules;
use galatea_config::{
    ConfigDraft, ConfigSource, Diagnostic, ENSEMBLE_PLATFORM, InstanceGroup, ModelConfig,
    RawModelConfig, Severity, VersionPolicy, differ_in_instances_only, with_instances_of,
};
use galatea_types::{Error, Result};

use super::{
    configuration::{self, Completion, PolledConfig},
    load_failure::no_version,
};
use crate::{
    agents,
    model_id::ModelId,
    override_folders::OverrideFolders,
    overrides::LoadOverrides,
    repository::{ConfigName, HiddenFolder, ModelFolder, ModelLayout, Repository},
    served_model::ServedModel,
};

/// A model as it is to be loaded: its files, its configuration as it was read, and which versions.
pub(crate) struct LoadPlan {
    pub id: ModelId,
    /// The model's files as a folder of this machine, be it the repository's own or a copy. Every version loaded
    /// by this plan keeps it until it is unloaded.
    pub folder: ModelFolder,
    /// Takes the place of the folder out of errors that clients read.
    pub hidden: HiddenFolder,
    pub versions: Vec<i64>,
    /// Where paths in the configuration may lead.
    pub paths: PathRules,
    /// With the backend named, and nothing else completed.
    pub raw: Arc<RawModelConfig>,
    /// What that was read from, for the places of mistakes that are found later.
    pub source: ConfigSource,
}

impl LoadPlan {
    pub fn new(
        id: &ModelId,
        overrides: &LoadOverrides,
        folders: &OverrideFolders,
        repository: &Repository,
        completion: &Completion<'_>,
    ) -> Result<Self> {
        let folder = match overrides.write_files(folders)? {
            Some(lease) => ModelFolder::open(&id.name, lease)?,
            None => repository.lease(id)?,
        };
        let hidden = HiddenFolder::of(&folder);
        let (polled, source) = poll(overrides, completion, &folder, repository.config_name())
            .map_err(|error| hidden.hide(error))?;
        let versions = choose_versions(&polled.version_policy, &folder);
        let paths = completion.paths.clone();
        let (id, raw) = (id.clone(), Arc::new(polled.raw));
        Ok(Self { id, folder, hidden, versions, paths, raw, source })
    }

    /// Why it has no version to load.
    pub fn without_version(&self) -> Error {
        let reason = no_version(&self.id);
        match self.folder.versions.is_empty() {
            true => self.layout().without_version().explain(reason),
            false => reason,
        }
    }

    /// Why a version could not be loaded, with the place in the configuration, or what is wrong with the model's file.
    pub fn explain(&self, version: i64, error: Error) -> Error {
        let error = self.source.locate(error);
        // A place in the configuration is the mistake already.
        if Diagnostic::of(&error).is_some_and(|found| found.line().is_some()) {
            return error;
        }
        match self.layout().model_file(version) {
            Some(oddity) if oddity.is_told_at_load() => oddity.explain(error),
            _ => error,
        }
    }

    /// Says what is not as it was meant and keeps nothing from loading.
    pub fn log_oddities(&self) {
        for oddity in self.layout().oddities() {
            log::warn!("{}", oddity.diagnostic(Severity::Warning).one_line());
        }
    }

    /// What its folder should hold.
    pub fn layout(&self) -> ModelLayout<'_> {
        ModelLayout::new(&self.folder, Some(&self.raw))
    }

    /// Whether it is made of other models.
    pub fn is_ensemble(&self) -> bool {
        self.raw.platform == ENSEMBLE_PLATFORM
    }

    /// The configuration as its backend completes it, without the defaults of the server.
    pub fn draft(&self, completion: &Completion<'_>) -> Result<RawModelConfig> {
        completion.complete(RawModelConfig::clone(&self.raw), &self.folder)
    }

    /// The checked configuration, completed by its backend.
    pub fn complete(&self, completion: &Completion<'_>) -> Result<Arc<ModelConfig>> {
        let config = completion.run(RawModelConfig::clone(&self.raw), &self.folder)?;
        check_instances(&config, self.versions.len())?;
        Ok(Arc::new(config))
    }

    /// Whether the versions it was made from would differ from this ready one in their instances at most.
    pub fn changes_instances_only(&self, ready: &ServedModel) -> bool {
        differ_in_instances_only(&self.raw, ready.polled())
            || differ_in_instances_only(&self.raw, ready.current_config().raw())
    }

    /// The checked configuration for such a plan: that of the ready version, with the plan's instance groups. No
    /// backend is asked.
    pub fn regroup(
        &self,
        ready: &ServedModel,
        completion: &Completion<'_>,
    ) -> Result<Arc<ModelConfig>> {
        let raw = with_instances_of(ready.current_config().raw(), &self.raw);
        let config = completion.check(raw, &self.folder)?;
        check_instances(&config, self.versions.len())?;
        Ok(Arc::new(config))
    }
}

fn poll(
    overrides: &LoadOverrides,
    completion: &Completion<'_>,
    folder: &ModelFolder,
    name: &ConfigName,
) -> Result<(PolledConfig, ConfigSource)> {
    let source = match &overrides.config {
        Some(json) => ConfigSource::json(json.as_str()),
        None => configuration::read(folder, name, completion.is_automatic)?,
    };
    let mut draft = ConfigDraft::from(source.parse()?);
    if folder.is_renamed {
        draft.set_name(&folder.name);
    }
    agents::inspect(&draft, folder.path())?;
    let polled = completion.poll(draft.into_raw(), folder);
    Ok((polled.map_err(|error| source.locate(error))?, source))
}

/// Instances of all versions of a model: each has a thread at least.
const MAX_INSTANCES: u64 = 4096;

#[derive(Debug, thiserror::Error)]
#[error(
    "model '{model}' would have {instances} instances in {versions} versions, the limit is {MAX_INSTANCES}: let \
     'version_policy' choose fewer versions"
)]
struct TooManyInstances {
    model: String,
    instances: u64,
    versions: usize,
}

impl From<TooManyInstances> for Error {
    fn from(error: TooManyInstances) -> Self {
        let text = error.to_string();
        let found = Diagnostic::error(text.as_str()).about("version_policy");
        Self::invalid_arg(text).with_source(found)
    }
}

fn check_instances(config: &ModelConfig, versions: usize) -> Result<(), TooManyInstances> {
    let of_group = |group: &InstanceGroup| u64::from(group.count) * group.gpus.len().max(1) as u64;
    let of_version: u64 = config.instance_groups().iter().map(of_group).sum();
    let instances = of_version.saturating_mul(versions as u64);
    if instances > MAX_INSTANCES {
        let model = config.name().to_string();
        return Err(TooManyInstances { model, instances, versions });
    }
    Ok(())
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
    use crate::repository::FolderLease;

    #[test]
    fn versions_by_policy() {
        let root = tempfile::tempdir().expect("folder");
        for version in ["1", "2", "5"] {
            std::fs::create_dir(root.path().join(version)).expect("folder");
        }
        let folder = ModelFolder::open("m", FolderLease::new(root)).expect("readable");
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
}
