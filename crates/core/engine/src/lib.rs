//! Model repository, life cycle of models, and what lies between a request and its scheduler.
//!
//! [`Engine`] is what front ends talk to: it looks ready models up and reports on them. Behind it the manager
//! loads and unloads models, from the repository's roots with the registered backends; the two meet in the table
//! of ready models only.
//!
//! No HTTP, no gRPC, no concrete backend is known here.

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
pub use manager::PollOutcome;
pub use options::{ControlMode, EngineOptions, GpuOptions};
pub use overrides::LoadOverrides;
pub use regions::{RegionDescription, RegionTable};
pub use repository::{
    FolderLease, FolderSnapshot, ForeignFile, LoadEvent, LoadFollower, LocalRoot, RepositoryRoot,
    SAVED_MODEL_FILE, SingleModelRoot, config_of_file, foreign_file,
};
pub use served_model::ServedModel;
pub use startup::{FailedModels, ModelFailure, StartupError};
pub use statistics::ModelStatisticsEntry;
