use std::{collections::BTreeMap, sync::Arc};

use galatea_telemetry::StatisticsSnapshot;
use galatea_types::{Buffer, Error, Result};

use crate::{BackendRegistry, EngineOptions, ServedModel};

/// One row of the repository index. A model that was never loaded has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub name: String,
    pub version: Option<i64>,
    /// READY, UNAVAILABLE, LOADING, UNLOADING or UNKNOWN.
    pub state: Option<&'static str>,
    /// Empty when there is none.
    pub reason: String,
}

/// Statistics of one model version.
#[derive(Clone, Debug)]
pub struct ModelStatisticsEntry {
    pub name: String,
    pub version: i64,
    pub statistics: StatisticsSnapshot,
}

/// What a load request may bring along in place of the repository's files.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// A model configuration as JSON.
    pub config: Option<String>,
    /// Path relative to the model's folder, and content.
    pub files: BTreeMap<String, Buffer>,
}

/// The server without its front ends.
pub struct Engine {
    options: EngineOptions,
    #[expect(dead_code)]
    backends: BackendRegistry,
}

impl Engine {
    pub fn new(options: EngineOptions, backends: BackendRegistry) -> Arc<Self> {
        Arc::new(Self { options, backends })
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Version of this server, as metadata tells it.
    pub fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Protocol extensions offered, in Triton's order (H-01).
    pub fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Loads what the control mode says is loaded at start. Blocks until every model is ready or failed;
    /// an error lists those that failed (the others serve all the same).
    pub fn load_startup_models(&self) -> Result<()> {
        Ok(())
    }

    pub fn is_live(&self) -> bool {
        true
    }

    pub fn is_ready(&self) -> bool {
        true
    }

    /// False also for a model that does not exist.
    pub fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool {
        self.model(name, version).is_ok()
    }

    /// The ready version asked for, or the highest. Takes no lock.
    pub fn model(&self, name: &str, version: Option<i64>) -> Result<Arc<ServedModel>> {
        let _ = version;
        Err(Error::not_found(format!("Request for unknown model: '{name}' is not found")))
    }

    /// Statistics of every ready version, of one model's versions, or of one version (M-56 errors).
    pub fn statistics(
        &self,
        name: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<ModelStatisticsEntry>> {
        let _ = (name, version);
        Ok(Vec::new())
    }

    /// Sorted by name, then version.
    pub fn repository_index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let _ = ready_only;
        Vec::new()
    }

    /// Loads or reloads a model. Blocks until it is ready or failed: call it where blocking is allowed.
    pub fn load_model(&self, name: &str, overrides: LoadOverrides) -> Result<()> {
        let _ = (name, overrides);
        Ok(())
    }

    /// Starts unloading and returns; requests in flight are answered first. An unknown model is no error.
    pub fn unload_model(&self, name: &str, unload_dependents: bool) -> Result<()> {
        let _ = (name, unload_dependents);
        Ok(())
    }

    /// All metric families in Prometheus text form.
    pub fn metrics_text(&self) -> String {
        String::new()
    }
}
