//! Model repository, life cycle of models, and the path of a request to its scheduler.
//!
//! [`Engine`] is the interface for front ends: it looks up ready models and reports on them. Behind it, the manager loads
//! models from the repository's roots with the registered backends, and unloads them. The two share only the table
//! of ready models.
//!
//! This crate knows no HTTP, no gRPC and no concrete backend.

#![warn(missing_docs)]

mod agents;
mod availability;
mod backend_registry;
mod backend_settings;
pub mod call;
mod control;
mod engine;
mod exit;
mod index;
mod initial_states;
mod inspect;
mod labels;
mod lifecycle;
mod manager;
mod metrics;
mod model_file;
mod model_id;
mod options;
mod overrides;
mod prepare;
mod ready_models;
mod regions;
mod repository;
mod served_model;
mod server_access;
mod startup;
mod statistics;
mod unloader;
mod warm_up;

pub use agents::{AgentAnswer, AgentContext, AgentRegistry, RepositoryAgent};
pub use availability::Availability;
pub use backend_registry::{BackendRegistry, InspectorRegistry, Registry};
pub use backend_settings::BackendSettings;
pub use control::Control;
pub use engine::Engine;
pub use galatea_scheduler::{ExecutionRules, RateLimiter, ResourceSupply, TestHold};
pub use index::IndexEntry;
pub use inspect::{Finding, Inspection, complete, inspect};
pub use manager::{PollOutcome, ReloadJitter};
pub use options::{ControlMode, EngineOptions, GpuOptions};
pub use overrides::LoadOverrides;
pub use regions::{CudaRegionDescription, RegionDescription, RegionTable};
pub use repository::{
    FolderLease, FolderSnapshot, ForeignFile, LoadEvent, LoadFollower, LocalRoot, RepositoryRoot,
    SAVED_MODEL_FILE, SingleModelRoot, config_of_file, foreign_file,
};
pub use served_model::ServedModel;
pub use startup::{FailedModels, ModelFailure, StartupError};
pub use statistics::ModelStatisticsEntry;
