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

impl ApiCategory {
    pub(super) const ALL: [Self; 9] = [
        Self::Health,
        Self::Metadata,
        Self::Inference,
        Self::SharedMemory,
        Self::ModelConfig,
        Self::ModelRepository,
        Self::Statistics,
        Self::Trace,
        Self::Logging,
    ];

    /// As it is named on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Metadata => "metadata",
            Self::Inference => "inference",
            Self::SharedMemory => "shared-memory",
            Self::ModelConfig => "model-config",
            Self::ModelRepository => "model-repository",
            Self::Statistics => "statistics",
            Self::Trace => "trace",
            Self::Logging => "logging",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}
