//! Runs Python models, each instance in a process of its own.
//!
//! A worker is the user's own interpreter on the package in `worker/`, which this crate carries. Server and
//! worker talk over two sockets and two pieces of anonymous shared memory: see `PROTOCOL.md`.
//!
//! # Invariants
//! - Nothing a worker does ends the server: what it sends is checked, and its end is an error of the
//!   requests it had.
//! - Nothing of a worker outlives its instance: process group, descriptors and memory go with it; and with
//!   the server, however that ends.
//! - A large tensor is copied once into the worker's reach, and not at all out of it.

mod asks;
mod calls;
mod complete;
pub mod environment;
mod identity;
mod inputs;
mod instance;
mod link;
mod memory;
mod metrics;
mod model;
mod origin;
mod output;
mod outputs;
mod package;
mod packing;
mod parameters;
mod process;
mod readiness;
mod reshape;
mod settings;
mod side;
mod socket;
mod spin;
mod streams;
mod wake;
#[doc(hidden)]
pub mod wire;
mod worker;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model};
use galatea_config::RawModelConfig;
use galatea_runtimes::{Environment, data_folder};
use galatea_types::Result;

use crate::{
    environment::PythonBackendFiles, model::PythonModel, origin::Origin, package::Package,
    settings::Settings,
};

/// The backend `python`, or one that is itself written in Python.
pub struct PythonBackend {
    name: String,
    origin: Origin,
    /// Written when the first model needs it.
    package: OnceLock<Result<Arc<Package>>>,
}

impl PythonBackend {
    /// `settings`: those of `--backend-config` for this backend. `variables`: the server's environment, where
    /// interpreters and folders are looked for. Errors name a setting that cannot be.
    pub fn open(
        settings: &BTreeMap<String, String>,
        variables: &Environment,
    ) -> Result<Arc<dyn Backend>> {
        let (settings, variables) = (settings.clone(), variables.clone());
        Self::made("python", Origin { files: None, settings, variables })
    }

    /// A backend whose models all run the code in `files`: their own folders hold what that code reads.
    /// `settings`: those of `--backend-config` for it.
    pub fn of_files(
        name: &str,
        files: PythonBackendFiles,
        settings: &BTreeMap<String, String>,
        variables: &Environment,
    ) -> Result<Arc<dyn Backend>> {
        let (settings, variables) = (settings.clone(), variables.clone());
        Self::made(name, Origin { files: Some(files), settings, variables })
    }

    fn made(name: &str, origin: Origin) -> Result<Arc<dyn Backend>> {
        Settings::read(&origin.settings)?;
        if origin.files.is_none() {
            // Another backend's code may read settings of its own.
            Settings::warn_of_unknown(&origin.settings);
        }
        Ok(Arc::new(Self { name: name.to_owned(), origin, package: OnceLock::new() }))
    }

    fn package(&self) -> Result<Arc<Package>> {
        let install = || {
            let data_folder = data_folder(&self.origin.variables).ok();
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
        config: RawModelConfig,
        context: &CompletionContext<'_>,
    ) -> Result<RawModelConfig> {
        complete::complete(config, context, &*self.package()?, &self.origin)
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(PythonModel::load(context, self.package()?, &self.origin)?))
    }
}
