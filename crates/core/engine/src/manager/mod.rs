//! Manages the loaded models: their files, configurations, dependencies and life cycle.
//!
//! Only the manager changes the ready models; requests only look them up. It has two parts: [`plan`] decides which models
//! are loaded and has no side effects, [`load`] loads them. The [`ModelManager`] joins them.

mod load;
mod model_manager;
mod plan;
mod repository_view;

pub use self::plan::{PollOutcome, ReloadJitter};
pub(crate) use self::{
    load::{
        Backends, BrokenStep, Completers, Completion, PolledModel, cycle_error, mistakes_of_folder,
    },
    model_manager::ModelManager,
    plan::{DependencyCycle, cycles},
};
