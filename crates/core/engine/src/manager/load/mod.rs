//! Loads the planned models: files, configurations, backends, instances.
//!
//! From the bottom up: a [`PolledModel`] is one model as it was read. The [`version_loader`] makes running versions of it. The
//! [`ModelLoader`] does that for one model at a time.

mod backend_library;
mod backends;
mod batch_strategy;
mod cached_models;
mod configuration;
mod dependency_error;
mod load_failure;
mod loads_under_way;
mod model_loader;
mod operations;
mod panic_boundary;
mod paths;
mod polled_model;
mod version_loader;

pub(crate) use self::{
    backends::{Backends, Completers},
    configuration::Completion,
    dependency_error::{BrokenStep, cycle_error},
    polled_model::{PolledModel, mistakes_of_folder},
};
pub(super) use self::{
    load_failure::{Failures, LoadFailure, joined},
    loads_under_way::LoadsUnderWay,
    model_loader::{Loaded, ModelLoader},
    operations::Operations,
    version_loader::VersionLoader,
};
