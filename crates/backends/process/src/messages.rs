//! The JSON of the commands that start a child.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend::{CompletionContext, PathRules};
use galatea_worker::LogLevels;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::isolation::Isolation;

/// The fields of both commands: the backend and the model version. Meta of INIT and COMPLETE.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Subject {
    /// Description from which the child constructs its backend, in the program's own form.
    pub backend: Value,
    /// The configuration; for INIT with this instance as its only one.
    pub config: Value,
    pub model_name: String,
    pub version: i64,
    pub model_dir: PathBuf,
    pub version_dir: PathBuf,
    /// Settings of `--backend-config`.
    pub backend_config: BTreeMap<String, String>,
    /// Paths that may leave the model's folder. `None`: all may.
    pub trusted_paths: Option<Vec<String>>,
    /// Levels of the server's log.
    pub log_levels: LogLevels,
    /// Most bytes of data for the process.
    pub memory_limit: Option<u64>,
    /// The instance to load. `None`: only complete the configuration.
    pub instance: Option<InstancePlace>,
}

impl Subject {
    /// Makes a command. `backend`: the description from which a child constructs it. `config`: as JSON.
    pub fn new(
        backend: &Value,
        config: Value,
        context: &CompletionContext<'_>,
        isolation: &Isolation,
        instance: Option<InstancePlace>,
    ) -> Self {
        Self {
            backend: backend.clone(),
            config,
            model_name: context.model_name.to_owned(),
            version: context.version,
            model_dir: context.model_dir.to_owned(),
            version_dir: context.version_dir.to_owned(),
            backend_config: context.backend_config.clone(),
            trusted_paths: context.paths.trusted().map(<[String]>::to_vec),
            log_levels: LogLevels::now(),
            memory_limit: isolation.memory_limit,
            instance,
        }
    }

    pub fn paths(&self) -> PathRules {
        match &self.trusted_paths {
            None => PathRules::anywhere(),
            Some(trusted) => PathRules::inside_model(trusted.clone()),
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct InstancePlace {
    pub name: String,
    /// True if it runs on the GPU `device_id`.
    pub on_gpu: bool,
    pub device_id: u32,
    pub index: usize,
}
