//! Runs Python models, each instance in its own process.
//!
//! A worker is the user's own interpreter running the package in `worker/`, which this crate embeds. The crate
//! `galatea-worker` starts, watches and ends such processes and exchanges tensors with them. This crate adds the parts for
//! Python: environments, settings, and the calls that models may make to the server.

#![warn(missing_docs)]

mod auto_complete;
mod defaults;
pub mod environment;
mod inspector;
mod model;
mod model_metrics;
mod package;
mod services;
mod settings;
mod start;
mod temporary_folder;
mod worker_rules;

pub use crate::{
    inspector::PythonInspector,
    worker_rules::{WorkerOptions, WorkerRules},
};
pub use galatea_worker::IsolationLevel;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model};
use galatea_config::ConfigDraft;
use galatea_runtimes::data_folder;
use galatea_types::{Environment, Result};

use crate::{
    defaults::ModelDefaults, environment::PythonBackendFiles, model::PythonModel, package::Package,
    settings::Settings,
};

/// The backend `python`, or a backend that is itself written in Python.
pub struct PythonBackend {
    name: String,
    defaults: ModelDefaults,
    /// The worker's code, written to disk when the first model needs it.
    package: OnceLock<Result<Arc<Package>>>,
}

impl PythonBackend {
    /// Opens the backend `python`, or with `files` a backend of another name whose models all run that code and keep its
    /// data in their own folders. `settings`: those of `--backend-config` for it. `variables`: the server's environment,
    /// which leads to interpreters and to the data folder. `rules`: limits of the models' processes.
    ///
    /// # Errors
    /// When a setting has an invalid value; the error names it.
    pub fn open(
        files: Option<(&str, PythonBackendFiles)>,
        settings: &BTreeMap<String, String>,
        variables: &Environment,
        rules: &WorkerRules,
    ) -> Result<Arc<dyn Backend>> {
        let (settings, variables, rules) = (settings.clone(), variables.clone(), rules.clone());
        let (name, files) = files.map_or(("python", None), |(name, files)| (name, Some(files)));
        let defaults = ModelDefaults { files, settings, variables, rules };
        Settings::read(&defaults.settings)?;
        defaults.rules.open(&defaults.variables)?;
        if defaults.files.is_none() {
            // The code of another backend may read settings of its own.
            Settings::warn_of_unknown(&defaults.settings);
        }
        Ok(Arc::new(Self { name: name.to_owned(), defaults, package: OnceLock::new() }))
    }

    fn package(&self) -> Result<Arc<Package>> {
        let install = || {
            let data_folder = data_folder(&self.defaults.variables).ok();
            Package::install(data_folder.as_deref()).map(Arc::new)
        };
        self.package.get_or_init(install).clone()
    }
}

impl Backend for PythonBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        auto_complete::complete(config, context, &*self.package()?, &self.defaults)
    }

    /// Returns true if the runtime is found. For a backend written in Python it is the backend's `model.py`.
    fn has_runtime(&self, runtime: &str) -> bool {
        self.defaults.has_runtime(runtime)
    }

    fn default_runtime(&self) -> Option<&str> {
        self.defaults.default_runtime()
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(PythonModel::load(context, self.package()?, &self.defaults)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_python_backend_uses_its_own_model_py() {
        let (settings, variables) = (BTreeMap::new(), Environment::default());
        let python = PythonBackend::open(None, &settings, &variables, &WorkerRules::default())
            .expect("no settings");
        assert!(python.has_runtime("libtriton_python.so") && !python.has_runtime("model.py"));
        assert_eq!(python.default_runtime(), None);
        let files = PythonBackendFiles { model_py: "/b/mine/model.py".into(), execution_env: None };
        let mine = PythonBackend::open(
            Some(("mine", files)),
            &settings,
            &variables,
            &WorkerRules::default(),
        )
        .expect("as well");
        assert!(mine.has_runtime("model.py") && !mine.has_runtime("libtriton_mine.so"));
        assert_eq!(mine.default_runtime(), Some("model.py"));
    }
}
