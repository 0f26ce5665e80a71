//! The backend of a name whose models run by libraries.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model, ServerAccess};
use galatea_config::{
    ConfigDraft, NormalizeContext, PreferredGroup, RawModelConfig, normalize, parse_json, to_json,
};
use galatea_types::{Error, LockExt as _, Result};
use serde::{Deserialize, Serialize};

use crate::{
    backend_object::{BackendArguments, OpenBackend},
    model::CModel,
    model_object::{LoadedModel, ModelParts},
    search::{LIBRARIES, find_library},
};

/// The options of a backend of libraries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CBackendOptions {
    /// The name of the backend in configurations.
    pub name: String,
    /// The folder of all backends.
    pub directory: PathBuf,
    /// The settings of the command line for the backend.
    pub settings: BTreeMap<String, String>,
    /// True if backends complete configurations.
    pub completes_config: bool,
    /// True if an execution ends only when all its requests are answered, as in a process of its own.
    pub waits_for_answers: bool,
}

/// A backend whose models run by `libtriton_NAME.so`. Models may bring a library of their own; each library is opened once.
pub struct CBackend {
    options: CBackendOptions,
    opened: Mutex<BTreeMap<PathBuf, Arc<OpenBackend>>>,
}

impl CBackend {
    /// Makes the backend. Its library is opened now if the backend's folder has one, else when a model needs it.
    ///
    /// # Errors
    /// The library cannot be opened.
    pub fn open(options: CBackendOptions) -> Result<Arc<dyn Backend>> {
        let backend = Self { options, opened: Mutex::default() };
        if let Some(path) = backend.own_library() {
            backend.library(path)?;
        }
        Ok(Arc::new(backend))
    }

    fn folder(&self) -> PathBuf {
        self.options.directory.join(&self.options.name)
    }

    fn own_library(&self) -> Option<PathBuf> {
        find_library(&self.options.name, [&*self.folder()])
    }

    /// Returns an opened library. The lock is held while it is opened: models that need it wait until it is initialised, once.
    fn library(&self, path: PathBuf) -> Result<Arc<OpenBackend>> {
        let mut opened = self.opened.lock_unpoisoned();
        if let Some(backend) = opened.get(&path) {
            return Ok(backend.clone());
        }
        let CBackendOptions { name, directory, settings, completes_config, .. } = &self.options;
        let (name, completes_config) = (name.as_str(), *completes_config);
        let arguments = BackendArguments { name, directory, settings, completes_config };
        let backend = OpenBackend::open(&path, &arguments, &LIBRARIES)?;
        opened.insert(path, backend.clone());
        Ok(backend)
    }

    /// Returns the library for a model, and opens it if necessary.
    fn library_for(&self, version_dir: &Path, model_dir: &Path) -> Result<Arc<OpenBackend>> {
        let name = &self.options.name;
        let own = self.folder();
        match find_library(name, [version_dir, model_dir, &own]) {
            Some(path) => self.library(path),
            None => Err(Error::invalid_arg(format!(
                "unable to find backend library for backend '{name}', try specifying runtime on the model configuration. \
                 {} is neither in '{}' nor in '{}' nor in '{}'",
                LIBRARIES.file_name(name),
                version_dir.display(),
                model_dir.display(),
                own.display()
            ))),
        }
    }
}

impl Backend for CBackend {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn runtime(&self) -> Option<String> {
        let opened = self.opened.lock_unpoisoned();
        let path = opened.keys().next()?;
        Some(format!("Triton's C interface, '{}'", path.display()))
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let backend = self.library_for(context.version_dir, context.model_dir)?;
        let names = NormalizeContext {
            directory_name: context.model_name,
            version_files: &[],
            available_gpus: &[],
        };
        let normalized = normalize(config.raw().clone(), &names)?;
        let model = LoadedModel::load(
            &backend,
            ModelParts {
                name: context.model_name,
                version: context.version,
                folder: context.model_dir,
                config: to_json(&normalized.raw),
                checked: None,
                // It can call no other model yet.
                server: ServerAccess::default(),
            },
        )?;
        match model.take_completed() {
            Some(completed) => Ok(completed_by(config, parse_json(&completed)?)),
            None => Ok(config),
        }
    }

    fn preferred_groups(
        &self,
        _config: &ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Vec<PreferredGroup> {
        let backend = self.library_for(context.version_dir, context.model_dir);
        backend.map(|backend| backend.preferred_groups.clone()).unwrap_or_default()
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let backend = self.library_for(&context.version_dir, &context.model_dir)?;
        let model = CModel::load(&backend, &context, self.options.waits_for_answers)?;
        Ok(Box::new(model))
    }
}

/// Takes the parts of a configuration that a backend may complete, as in Triton: inputs, outputs, the batch size, the choice of
/// the scheduler if there is none, and whether the model is decoupled.
fn completed_by(config: ConfigDraft, completed: RawModelConfig) -> ConfigDraft {
    let mut raw = config.into_raw();
    raw.input = completed.input;
    raw.output = completed.output;
    raw.max_batch_size = completed.max_batch_size;
    raw.scheduling_choice = raw.scheduling_choice.or(completed.scheduling_choice);
    raw.model_transaction_policy = completed.model_transaction_policy;
    raw.into()
}
