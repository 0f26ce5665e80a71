//! Which models are loaded: their files, configurations, dependencies and life.
//!
//! Only the manager changes what is ready; requests only look it up. It has two parts: [`plan`] decides what is loaded and
//! touches nothing, [`load`] does it. The [`ModelManager`] joins them.

mod load;
mod model_manager;
mod plan;
mod repository_view;

pub use self::plan::PollOutcome;
pub(crate) use self::{
    load::{
        Backends, BrokenStep, Completers, Completion, PolledModel, cycle_error, mistakes_of_folder,
    },
    model_manager::ModelManager,
    plan::{DependencyCycle, cycles},
};
