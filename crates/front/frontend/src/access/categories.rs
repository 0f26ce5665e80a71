//! The groups of calls that can be restricted.

/// A group of calls that can be restricted. Every call of either protocol belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiCategory {
    /// Whether server and models are live and ready.
    Health,
    /// Metadata of server and models.
    Metadata,
    /// Inference of every kind.
    Inference,
    /// Regions of system and CUDA shared memory.
    SharedMemory,
    /// Configurations of models.
    ModelConfig,
    /// Index, load and unload.
    ModelRepository,
    /// Statistics of models.
    Statistics,
    /// Trace settings.
    Trace,
    /// Log settings.
    Logging,
}

galatea_types::names! {
    /// As it is named on the command line.
    pub ApiCategory::name {
        Health = "health", Metadata = "metadata", Inference = "inference", SharedMemory = "shared-memory",
        ModelConfig = "model-config", ModelRepository = "model-repository", Statistics = "statistics",
        Trace = "trace", Logging = "logging",
    }
}

impl ApiCategory {
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}
