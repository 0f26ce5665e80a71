//! Which models are loaded: their files, configurations, dependencies and life.
//!
//! Only the manager changes what is ready; requests only look it up. From the bottom up: a [`plan`] is one model
//! as it is to be loaded, the [`version_loader`] makes running versions of it, the [`model_loader`] does that for
//! one model at a time, [`waves`] order several models by what they need, and the [`ModelManager`] decides what
//! is loaded at all.

mod backends;
mod batch_strategy;
mod cached_models;
mod configuration;
mod control_error;
mod cycle;
mod dependencies;
mod dependency_error;
mod instance_changes;
mod load_failure;
mod looks;
mod model_loader;
mod model_manager;
mod operations;
mod panic_wall;
mod paths;
mod plan;
mod poll;
mod version_loader;
mod waves;

pub use self::looks::PollOutcome;
pub(crate) use self::{
    backends::Backends,
    configuration::Completion,
    cycle::{Cycle, cycles},
    dependency_error::{DependencyError, cycle_error, missing_model_advice, version_advice},
    model_manager::ModelManager,
    plan::{LoadPlan, mistakes_of_folder},
};
