//! Model repository, life of a model, and the way of a request to its scheduler.
//!
//! No HTTP, no gRPC, no concrete backend is known here.

mod engine;
mod options;
mod served_model;

pub use engine::{Engine, IndexEntry, LoadOverrides, ModelStatisticsEntry};
pub use options::{BackendRegistry, ControlMode, EngineOptions};
pub use served_model::ServedModel;
