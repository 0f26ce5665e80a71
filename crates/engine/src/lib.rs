//! Model repository, life of a model, and the way of a request to its scheduler.
//!
//! No HTTP, no gRPC, no concrete backend is known here.

mod access;
mod dependencies;
mod engine;
mod index;
mod lifecycle;
mod load_failure;
mod loader;
mod loading;
mod metrics;
mod options;
mod plan;
mod prepare;
mod reaper;
mod repository;
mod served_model;
mod startup;

pub use engine::{Engine, LoadOverrides, ModelStatisticsEntry, Readiness};
pub use index::IndexEntry;
pub use options::{BackendRegistry, ControlMode, EngineOptions, GpuOptions};
pub use served_model::ServedModel;
pub use startup::{FailedModels, ModelFailure, StartupError};
