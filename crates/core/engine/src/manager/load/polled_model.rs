//! A model as it was read from its repository, for a load.

use std::{sync::Arc, time::Instant};

use galatea_backend::PathRules;
use galatea_config::{
    ConfigDraft, ConfigSource, Diagnostic, ENSEMBLE_PLATFORM, FieldPath, InstanceGroup,
    ModelConfig, RawModelConfig, Severity, VersionPolicy, differ_in_instances_only,
    with_instances_of,
};
use galatea_types::{Code, Error, Result};

use super::{
    batch_strategy,
    configuration::{self, Completion, PolledConfig},
    load_failure::no_version,
};
use crate::{
    lifecycle::Generation,
    manager::plan::choose_versions,
    model_id::ModelId,
    overrides::{LoadOverrides, OverrideFolders},
    repository::{ConfigName, HiddenFolder, ModelFolder, ModelLayout, Repository},
    served_model::ServedModel,
};

/// A model to load: its files, its configuration as it was read, and its versions.
pub(crate) struct PolledModel {
    pub id: ModelId,
    /// The model's files in a folder of this machine: the repository's own or a copy. Every version loaded from
    /// it keeps it until the version is unloaded.
    pub folder: ModelFolder,
    /// Removes the place of the folder from errors that clients read.
    pub hidden: HiddenFolder,
    pub versions: Vec<i64>,
    version_policy: VersionPolicy,
    /// The rules for paths in the configuration.
    pub paths: PathRules,
    /// The configuration with the backend named, and nothing else completed.
    pub raw: Arc<RawModelConfig>,
    /// The text that it was read from, for the places of mistakes that are found later.
    pub source: ConfigSource,
}

/// A version of the model that is being loaded.
#[derive(Clone, Copy)]
pub(crate) struct Loading<'a> {
    pub polled: &'a PolledModel,
    /// The complete configuration.
    pub config: &'a Arc<ModelConfig>,
    pub version: i64,
    pub generation: Generation,
    pub started_at: Instant,
}

impl PolledModel {
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
        let (folder, draft, source) = read(overrides, completion, folder, &repository.config_name)
            .map_err(|error| hidden.hide(error))?;
        // An agent may have replaced the folder.
        let hidden = HiddenFolder::of(&folder);
        let polled = completion.poll(draft.into_raw(), &folder);
        let polled = polled.map_err(|error| hidden.hide(source.locate(error)))?;
        let hidden = hidden.but_for(source.clone());
        let versions = choose_versions(&polled.version_policy, &folder.versions);
        let paths = completion.paths.clone();
        let PolledConfig { raw, version_policy } = polled;
        let (id, raw) = (id.clone(), Arc::new(raw));
        Ok(Self { id, folder, hidden, versions, version_policy, paths, raw, source })
    }

    /// Returns the reason why it has no version to load.
    pub fn without_version(&self) -> Error {
        let reason = no_version(&self.id);
        if self.folder.versions.is_empty() {
            return self.layout().without_version().explain(reason);
        }
        let (field, wanted) = match &self.version_policy {
            VersionPolicy::Specific(wanted) => ("version_policy.specific.versions", &wanted[..]),
            VersionPolicy::Latest(_) | VersionPolicy::All => ("version_policy", &[][..]),
        };
        let found = Diagnostic::error(reason.message())
            .about(field)
            .with_advice(version_choice_advice(&self.folder, wanted));
        self.source.locate(Error::invalid_arg(reason.message()).with_source(found))
    }

    /// Returns the versions that the configuration names and that are missing. The others are loaded.
    pub fn missing_versions(&self) -> Vec<Diagnostic> {
        let VersionPolicy::Specific(wanted) = &self.version_policy else { return Vec::new() };
        let missing = wanted.iter().enumerate().filter(|(_, v)| !self.folder.versions.contains(v));
        let found = missing.map(|(index, version)| {
            let text = format!(
                "version {version} is specified for model '{}', but the version directory is not present",
                self.folder.name
            );
            let field = FieldPath::from("version_policy.specific.versions").index(index);
            let advice = version_choice_advice(&self.folder, &[*version]);
            Diagnostic::warning(text).about(field).with_advice(advice)
        });
        found.take(MOST_MISSING).collect()
    }

    /// Adds the place in the configuration, or the mistake in the model's file, to the error of a version.
    pub fn explain(&self, version: i64, error: Error) -> Error {
        let error = self.source.locate(error);
        // An error with a place in the configuration needs no other explanation.
        if Diagnostic::of(&error).is_some_and(|found| found.line().is_some()) {
            return error;
        }
        match self.layout().model_file(version) {
            Some(oddity) if oddity.is_told_at_load() => oddity.explain(error),
            _ => error,
        }
    }

    /// Logs oddities that do not prevent a load, except those that `told` already has.
    pub fn log_oddities(&self, told: &str) {
        for missing in self.source.locate_all(self.missing_versions()) {
            log::error!(model = *self.id.name; "{}", missing.one_line());
        }
        let oddities = self.layout().oddities();
        let found = oddities.iter().map(|oddity| oddity.diagnostic(Severity::Warning));
        for found in found.filter(|found| !told.contains(&found.text)) {
            let shown = found.render(galatea_config::coloured);
            log::warn!(model = *self.id.name, shown; "{}", found.one_line());
        }
    }

    pub fn layout(&self) -> ModelLayout<'_> {
        ModelLayout::new(&self.folder, Some(&self.raw))
    }

    pub fn is_ensemble(&self) -> bool {
        self.raw.platform == ENSEMBLE_PLATFORM
    }

    /// Returns the configuration as its backend completes it, without the server's defaults.
    pub fn draft(&self, completion: &Completion<'_>) -> Result<RawModelConfig> {
        completion.complete(RawModelConfig::clone(&self.raw), &self.folder)
    }

    /// Returns the checked configuration, completed by its backend.
    pub fn complete(&self, completion: &Completion<'_>) -> Result<Arc<ModelConfig>> {
        let config = completion.run(RawModelConfig::clone(&self.raw), &self.folder)?;
        check_instances(&config, self.versions.len())?;
        let backends = completion.options.backend_directory.as_deref();
        batch_strategy::check(&config, &self.folder, &self.versions, backends)?;
        Ok(Arc::new(config))
    }

    /// Returns all mistakes of the configuration, as far as the model's files show them.
    pub fn mistakes(&self, completion: &Completion<'_>) -> Vec<Diagnostic> {
        match self.draft(completion) {
            Ok(completed) => completion.mistakes(completed, &self.folder, true),
            Err(_) => completion.mistakes(RawModelConfig::clone(&self.raw), &self.folder, false),
        }
    }

    /// Returns true if its versions would differ from this ready one in their instances at most.
    pub fn changes_instances_only(&self, ready: &ServedModel) -> bool {
        differ_in_instances_only(&self.raw, &ready.polled)
            || differ_in_instances_only(&self.raw, ready.current_config().raw())
    }

    /// Returns the checked configuration for that: the one of the ready version with the instance groups of this one. Calls no
    /// backend.
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

/// Reads the configuration of a model, and lets the agents that it names check the model's folder. If one replaces the
/// folder, the configuration is read from the new folder.
fn read(
    overrides: &LoadOverrides,
    completion: &Completion<'_>,
    folder: ModelFolder,
    name: &ConfigName,
) -> Result<(ModelFolder, ConfigDraft, ConfigSource)> {
    let read = |folder: &ModelFolder| -> Result<_> {
        let source = match &overrides.config {
            Some(json) => ConfigSource::json(json.as_str()),
            None => configuration::read(folder, name, completion.options.auto_completes_config)?,
        };
        let mut draft = ConfigDraft::from(source.parse()?);
        if folder.is_renamed {
            draft.set_name(&folder.name);
        }
        Ok((draft, source))
    };
    let (draft, source) = read(&folder)?;
    let visited = completion.options.agents.visit(&draft, &folder)?;
    let (draft, source) = match visited.path() == folder.path() {
        true => (draft, source),
        false => read(&visited)?,
    };
    Ok((visited, draft, source))
}

/// Returns all mistakes of the configuration in a folder whose model cannot be read, and its text. Returns nothing if the
/// configuration cannot be read.
pub(crate) fn mistakes_of_folder(
    folder: &ModelFolder,
    name: &ConfigName,
    completion: &Completion<'_>,
) -> (ConfigSource, Vec<Diagnostic>) {
    let source = configuration::read(folder, name, completion.options.auto_completes_config)
        .unwrap_or_default();
    let mistakes = source.mistakes();
    if !mistakes.is_empty() {
        return (source, mistakes);
    }
    let named = source.parse().and_then(|raw| completion.with_backend(raw, folder));
    let found = named.map(|raw| completion.mistakes(raw, folder, false)).unwrap_or_default();
    (source, found)
}

/// The largest number of missing versions that are reported.
const MOST_MISSING: usize = 20;

/// The largest number of instances of all versions of a model: each has at least one thread.
const MAX_INSTANCES: u64 = 4096;

fn check_instances(config: &ModelConfig, versions: usize) -> Result<()> {
    let of_group = |group: &InstanceGroup| u64::from(group.count) * group.gpus.len().max(1) as u64;
    let of_version: u64 = config.instance_groups().iter().map(of_group).sum();
    let instances = of_version.saturating_mul(versions as u64);
    if instances > MAX_INSTANCES {
        let found = Diagnostic::error(format!(
            "model '{}' would have {instances} instances in {versions} versions, the limit is {MAX_INSTANCES}: let \
             'version_policy' choose fewer versions",
            config.name()
        ));
        let found = found.about("version_policy");
        return Err(found.into_unplaced_error(Code::InvalidArg));
    }
    Ok(())
}

/// Returns advice on missing versions. `wanted` are the missing ones that the policy names.
fn version_choice_advice(folder: &ModelFolder, wanted: &[i64]) -> String {
    const MOST: usize = 5;
    let listed = |versions: &mut dyn Iterator<Item = &i64>| {
        versions.take(MOST).map(i64::to_string).collect::<Vec<_>>().join(", ")
    };
    // Lists the newest, of which one is probably meant.
    let there = listed(&mut folder.versions.iter().rev());
    let of = if folder.versions.len() == 1 { "version" } else { "versions" };
    let more = if folder.versions.len() > MOST { " and more" } else { "" };
    match wanted.first() {
        Some(missing) => format!(
            "the folder has {of} {there}{more}: name one of them, or add the folder '{}/{missing}'",
            folder.name
        ),
        None => format!(
            "the folder has {of} {there}{more}, and the policy chooses none: write \
             `version_policy {{ latest {{ num_versions: 1 }} }}`, or leave it out"
        ),
    }
}
