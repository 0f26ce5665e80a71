//! From a model's configuration as written to the checked one: completed by its backend, with defaults filled in.

use std::io;

use galatea_backend::{Backend, CompletionContext, PathRules};
use galatea_config::{CheckContext, ConfigDraft, ModelConfig, NormalizeContext, RawModelConfig};
use galatea_types::{Error, Result};

use super::{backends::Backends, paths};
use crate::{
    options::GpuOptions,
    repository::{CONFIG_FILE, ModelFolder, read_text_file},
};

/// How configurations are completed.
pub(super) struct Completion<'a> {
    pub backends: &'a Backends,
    pub gpus: &'a GpuOptions,
    /// Whether backends may complete a configuration, and a model may have none.
    pub is_automatic: bool,
    /// Where paths in the configuration may lead.
    pub paths: &'a PathRules,
}

/// The configuration in a model's folder.
pub(super) fn read(folder: &ModelFolder, may_be_missing: bool) -> Result<RawModelConfig> {
    let path = folder.path().join(CONFIG_FILE);
    let source = match read_text_file(&path) {
        Ok(source) => source,
        Err(e) if e.kind() == io::ErrorKind::NotFound && may_be_missing => {
            return Ok(RawModelConfig::default());
        }
        Err(e) => {
            let text = format!("failed to read {}/{CONFIG_FILE}: {e}", folder.name);
            return Err(Error::invalid_arg(text).with_source(e));
        }
    };
    galatea_config::parse_text(&source)
        // Clients read this: they get the path inside the repository, not the one on the server.
        .map_err(|e| {
            let text = e.render(&format!("{}/{CONFIG_FILE}", folder.name), &source);
            Error::invalid_arg(text).with_source(e)
        })
}

impl Completion<'_> {
    /// Fills in what the file leaves out, asks the backend for what only the model knows, and checks the whole.
    /// With it, why the backend could not be opened, or could not complete the configuration: a model without a
    /// backend has a configuration all the same.
    pub fn run(
        &self,
        raw: RawModelConfig,
        folder: &ModelFolder,
    ) -> Result<(ModelConfig, Option<Error>)> {
        let version_files = folder.lowest_version_files();
        let context = NormalizeContext {
            directory_name: &folder.name,
            version_files: &version_files,
            available_gpus: &self.gpus.available,
        };
        let raw = paths::check_files(raw, &folder.name)?;
        let raw = galatea_config::resolve_backend(raw, &context)?;
        if !self.is_automatic || raw.backend.is_empty() {
            return Ok((self.checked(raw, &context)?, None));
        }
        let backend = match self.backends.open(&raw.backend) {
            Ok(backend) => backend,
            Err(error) => return Ok((self.checked(raw, &context)?, Some(error))),
        };
        match self.ask_backend(raw.clone(), &*backend, folder) {
            Ok(completed) => Ok((self.checked(completed, &context)?, None)),
            // The configuration may be complete without the backend. If it is not, the backend's error is the
            // reason, not the check's.
            Err(error) => match self.checked(raw, &context) {
                Ok(config) => Ok((config, Some(error))),
                Err(_) => Err(error),
            },
        }
    }

    fn ask_backend(
        &self,
        raw: RawModelConfig,
        backend: &dyn Backend,
        folder: &ModelFolder,
    ) -> Result<RawModelConfig> {
        let Some(&lowest) = folder.versions.first() else { return Ok(raw) };
        let backend_config = self.backends.settings(&raw.backend);
        let version_dir = folder.version_dir(lowest);
        let context = CompletionContext {
            model_name: &folder.name,
            model_dir: folder.path(),
            version: lowest,
            version_dir: &version_dir,
            backend_config: &backend_config,
            paths: self.paths,
        };
        Ok(backend.complete_config(raw.into(), &context)?.into_raw())
    }

    fn checked(
        &self,
        mut raw: RawModelConfig,
        context: &NormalizeContext<'_>,
    ) -> Result<ModelConfig> {
        let mut context = *context;
        if !self.gpus.available.is_empty() && !self.can_use_gpus(&raw.backend) {
            raw = keep_off_gpus(raw, &self.gpus.available);
            context.available_gpus = &[];
        }
        let normalized = galatea_config::normalize(raw, &context)?;
        let context = CheckContext {
            directory_name: context.directory_name,
            supports_gpus: true,
            available_gpus: &self.gpus.available,
            min_compute_capability: self.gpus.min_compute_capability,
        };
        ModelConfig::check(normalized, &context)
    }

    /// True for a backend that cannot be opened: that error is reported when the model is loaded.
    fn can_use_gpus(&self, backend: &str) -> bool {
        self.backends.open(backend).map_or(true, |backend| backend.can_use_gpus())
    }
}

/// Groups of kind GPU that name none get those there are, so that the backend reports why it cannot use them, and
/// not the check that none was named. All other groups are filled in as on a machine without GPUs.
fn keep_off_gpus(raw: RawModelConfig, gpus: &[u32]) -> RawModelConfig {
    let mut draft = ConfigDraft::from(raw);
    draft.list_gpus(gpus);
    draft.into_raw()
}
