//! Makes a checked configuration of a written one, in two steps: checks when it is read (polled) from its repository, and
//! checks when a version is loaded, after its backend has completed it.

use std::{io, sync::Arc};

use galatea_backend::{CompletionContext, Inspector, PathRules};
use galatea_config::{
    CheckContext, ConfigDraft, ConfigSource, Diagnostic, MissingGpus, ModelConfig,
    NormalizeContext, NormalizedConfig, Place, RawModelConfig, VersionPolicy,
};
use galatea_types::{Code, Error, Result};

use super::{
    backends::{Completer, Completers},
    paths,
};
use crate::{
    manager::plan::versions_to_load,
    options::{EngineOptions, GpuOptions},
    repository::{ConfigName, ModelFolder, ModelLayout, read_text_file, text_file_advice},
};

#[derive(Clone, Copy)]
pub(crate) struct Completion<'a> {
    pub backends: Completers<'a>,
    pub options: &'a EngineOptions,
    /// The GPUs of the options, or fewer.
    pub gpus: &'a GpuOptions,
    /// The rules for paths in the configuration.
    pub paths: &'a PathRules,
}

/// Reads the configuration in a model's folder.
pub(super) fn read(
    folder: &ModelFolder,
    name: &ConfigName,
    may_be_missing: bool,
) -> Result<ConfigSource> {
    let (file, source) = match name.read(|file| read_text_file(&folder.path().join(file))) {
        Ok(found) => found,
        Err((_, e)) if e.kind() == io::ErrorKind::NotFound && may_be_missing => {
            return Ok(ConfigSource::default());
        }
        Err((file, e)) => {
            let text = format!("failed to read {}/{file}: {e}", folder.name);
            let Some(advice) = text_file_advice(&e) else {
                return Err(Error::invalid_arg(text).with_source(e));
            };
            let place = Place::file(format!("{}/{file}", folder.name));
            let found = Diagnostic::error(text.as_str()).with_advice(advice).at(place);
            let text = format!("{text}{}", found.appendix());
            return Err(Error::invalid_arg(text).with_source(found));
        }
    };
    // Clients read this: they get the path inside the repository, not the one on the server.
    Ok(ConfigSource::text(format!("{}/{file}", folder.name), source))
}

/// A configuration as it was read.
pub(crate) struct PolledConfig {
    /// The configuration with the backend named, and nothing else completed.
    pub raw: RawModelConfig,
    pub version_policy: VersionPolicy,
}

impl Completion<'_> {
    /// Names the backend, and refuses a configuration that no backend could complete.
    pub fn poll(&self, raw: RawModelConfig, folder: &ModelFolder) -> Result<PolledConfig> {
        let raw = self.with_backend(raw, folder)?;
        let normalized = galatea_config::normalize(raw.clone(), &self.context(folder, &[]))?;
        let context = self.check_context(folder, None);
        let version_policy =
            normalized.check_polled(&context, !self.options.auto_completes_config)?;
        Ok(PolledConfig { raw, version_policy })
    }

    fn context<'a>(
        &'a self,
        folder: &'a ModelFolder,
        version_files: &'a [String],
    ) -> NormalizeContext<'a> {
        let available_gpus = &self.gpus.available;
        NormalizeContext { directory_name: &folder.name, version_files, available_gpus }
    }

    /// Names the backend; from the model's files if the configuration does not.
    pub fn with_backend(
        &self,
        raw: RawModelConfig,
        folder: &ModelFolder,
    ) -> Result<RawModelConfig> {
        let files = folder.lowest_version_files();
        galatea_config::resolve_backend(raw, &self.context(folder, &files)).map_err(|error| {
            match ModelLayout::new(folder, None).without_backend() {
                Some(oddity) => oddity.explain(error),
                None => error,
            }
        })
    }

    /// Lets the backend complete a polled configuration, fills in the rest and checks the whole. As in Triton,
    /// a missing backend is reported first, and instances that cannot run second.
    pub fn run(&self, raw: RawModelConfig, folder: &ModelFolder) -> Result<ModelConfig> {
        let raw = paths::check_files(raw, &folder.name)?;
        if raw.backend.is_empty() {
            let context = self.check_context(folder, None);
            return ModelConfig::check(self.normalized(raw, folder, None)?, &context);
        }
        if let Some(inspector) = self.backends.inspector_before_opening(&raw.backend) {
            self.inspect_first(&raw, folder, inspector)?;
        }
        let backend = self.backends.completer(&raw, folder)?;
        self.run_with(raw, folder, &backend)
    }

    fn run_with(
        &self,
        mut raw: RawModelConfig,
        folder: &ModelFolder,
        backend: &Completer,
    ) -> Result<ModelConfig> {
        let context = self.check_context(folder, Some(backend));
        check_runtime(&raw, backend)?;
        backend.name_runtime(&mut raw);
        let normalized = self.normalized(raw.clone(), folder, Some(backend))?;
        normalized.check_instance_groups(&context)?;
        let completed = match self.options.auto_completes_config {
            true => self.ask_backend(raw, backend, folder)?,
            false => raw,
        };
        ModelConfig::check(self.normalized(completed, folder, Some(backend))?, &context)
    }

    /// Refuses a configuration that the backend would refuse, before it is opened.
    fn inspect_first(
        &self,
        raw: &RawModelConfig,
        folder: &ModelFolder,
        inspector: Arc<dyn Inspector>,
    ) -> Result<()> {
        let completer = Completer::Inspector(inspector.clone());
        let config = self.run_with(raw.clone(), folder, &completer).or_else(|error| {
            // Only the backend knows if it can use the GPUs, so only a mistake in both cases counts.
            let gpus = GpuOptions { available: Vec::new(), ..self.gpus.clone() };
            let without = Completion { gpus: &gpus, ..*self };
            without.run_with(raw.clone(), folder, &completer).map_err(|_| error)
        })?;
        // With several versions, each has its own errors, which it gets when it is loaded.
        let &[version] = &*versions_to_load(raw, &folder.versions) else { return Ok(()) };
        self.with_context(&raw.backend, folder, version, |context| {
            inspector.inspect(&config, context)
        })
    }

    /// Lets the backend complete a polled configuration with data that only the model has.
    pub fn complete(
        &self,
        mut raw: RawModelConfig,
        folder: &ModelFolder,
    ) -> Result<RawModelConfig> {
        if raw.backend.is_empty() {
            return Ok(raw);
        }
        let backend = self.backends.completer(&raw, folder)?;
        backend.name_runtime(&mut raw);
        self.ask_backend(raw, &backend, folder)
    }

    /// Returns all mistakes of a polled configuration, without the places. `is_completed` is true if its backend has already
    /// completed it.
    pub fn mistakes(
        &self,
        raw: RawModelConfig,
        folder: &ModelFolder,
        is_completed: bool,
    ) -> Vec<Diagnostic> {
        let backend = self.backends.completer(&raw, folder).ok();
        let Ok(normalized) = self.normalized(raw, folder, backend.as_ref()) else {
            return Vec::new();
        };
        normalized.mistakes(
            &self.check_context(folder, backend.as_ref()),
            is_completed || !self.options.auto_completes_config,
        )
    }

    /// Checks a configuration that its backend has completed.
    pub fn check(&self, raw: RawModelConfig, folder: &ModelFolder) -> Result<ModelConfig> {
        let backend = self.backends.completer(&raw, folder)?;
        let normalized = self.normalized(raw, folder, Some(&backend))?;
        let context = self.check_context(folder, Some(&backend));
        normalized.check_instance_groups(&context)?;
        ModelConfig::check(normalized, &context)
    }

    fn check_context<'a>(
        &'a self,
        folder: &'a ModelFolder,
        backend: Option<&Completer>,
    ) -> CheckContext<'a> {
        let is_missed = self.gpus.missing == MissingGpus::UseCpu && !self.has_use_of_gpus(backend);
        CheckContext {
            directory_name: &folder.name,
            supports_gpus: true,
            available_gpus: if is_missed { &[] } else { &self.gpus.available },
            missing_gpus: self.gpus.missing,
            min_compute_capability: self.gpus.min_compute_capability,
        }
    }

    /// Returns true if there are GPUs that this backend can use, or any backend if none is given.
    fn has_use_of_gpus(&self, backend: Option<&Completer>) -> bool {
        !self.gpus.available.is_empty() && backend.is_none_or(Completer::can_use_gpus)
    }

    fn ask_backend(
        &self,
        raw: RawModelConfig,
        backend: &Completer,
        folder: &ModelFolder,
    ) -> Result<RawModelConfig> {
        let Some(version) = versions_to_load(&raw, &folder.versions).first().copied() else {
            return Ok(raw);
        };
        let backend_name = raw.backend.clone();
        self.with_context(&backend_name, folder, version, |context| {
            Ok(backend.complete_config(raw.into(), context)?.into_raw())
        })
    }

    /// Calls `ask` with the context of one version of a model for a backend.
    pub fn with_context<T>(
        &self,
        backend: &str,
        folder: &ModelFolder,
        version: i64,
        ask: impl FnOnce(&CompletionContext<'_>) -> T,
    ) -> T {
        let backend_config = self.backends.settings(backend);
        let version_dir = folder.version_dir(version);
        ask(&CompletionContext {
            model_name: &folder.name,
            model_dir: folder.path(),
            version,
            version_dir: &version_dir,
            backend_config: &backend_config,
            paths: self.paths,
        })
    }

    /// Adds all defaults. The backend is already named, so no file of the model says more about it.
    fn normalized(
        &self,
        mut raw: RawModelConfig,
        folder: &ModelFolder,
        backend: Option<&Completer>,
    ) -> Result<NormalizedConfig> {
        let mut available_gpus = &*self.gpus.available;
        if !self.has_use_of_gpus(backend) {
            if self.gpus.missing == MissingGpus::Refuse {
                raw = keep_off_gpus(raw, available_gpus);
            }
            available_gpus = &[];
        }
        if let Some(backend) = backend {
            raw = self.with_preferred_group(raw, folder, backend, available_gpus);
        }
        let context = NormalizeContext { available_gpus, ..self.context(folder, &[]) };
        galatea_config::normalize(raw, &context)
    }

    /// Gives a configuration without instance groups the one that its backend prefers.
    fn with_preferred_group(
        &self,
        raw: RawModelConfig,
        folder: &ModelFolder,
        backend: &Completer,
        available_gpus: &[u32],
    ) -> RawModelConfig {
        let version = versions_to_load(&raw, &folder.versions).first().copied();
        let Some(version) = version.filter(|_| raw.instance_group.is_empty()) else { return raw };
        let draft = ConfigDraft::from(raw);
        let preferred = self.with_context(&draft.raw().backend, folder, version, |context| {
            backend.preferred_groups(&draft, context)
        });
        galatea_config::with_preferred_group(draft.into_raw(), &preferred, available_gpus)
    }
}

/// Refuses a configuration whose `runtime` is not that of its backend, in Triton's words as far as they apply.
fn check_runtime(raw: &RawModelConfig, backend: &Completer) -> Result<()> {
    let runtime = raw.runtime.as_str();
    if runtime.is_empty() || backend.has_runtime(runtime) {
        return Ok(());
    }
    let (prefix, alternative) = match runtime.ends_with(".py") {
        true => ("Python backend based ", ", or use backend 'python' for a model.py"),
        false => ("", ""),
    };
    let found = Diagnostic::error(format!(
        "unable to find {prefix}backend library '{runtime}' for model '{}': the backend '{}' is part of this server, and no \
         other library is opened for it. Remove 'runtime' from the configuration{alternative}",
        raw.name, raw.backend
    ));
    let found = found.about("runtime");
    Err(found.into_unplaced_error(Code::InvalidArg))
}

/// Gives GPU groups without GPUs all available ones, so that the backend reports why it cannot use them, and not the check
/// that none was named. All other groups are filled in as on a machine without GPUs.
fn keep_off_gpus(raw: RawModelConfig, gpus: &[u32]) -> RawModelConfig {
    let mut draft = ConfigDraft::from(raw);
    draft.list_gpus(gpus);
    draft.into_raw()
}
