//! Plans which models a call, a look at the repositories or the start loads, in which order, and which stay as they are.
//!
//! Plans depend only on the arguments: the repositories as a [`RepositoryView`], the loaded models as [`Dependencies`], and the
//! request. Planning uses no file, thread or clock.

mod cycle;
mod dependencies;
mod instance_changes;
mod order;
mod poll_history;
mod reload_jitter;
mod requests;
mod versions;

pub(crate) use self::{
    cycle::{DependencyCycle, cycles},
    requests::LoadRequest,
};
pub(super) use self::{
    dependencies::Dependencies,
    instance_changes::{InstanceChange, instance_specs},
    order::{Step, in_order},
    poll_history::{PollHistory, PolledFolders},
    requests::{RepositoryView, Requests, is_current, with_needs},
    versions::{choose_versions, versions_to_load},
};
pub use self::{poll_history::PollOutcome, reload_jitter::ReloadJitter};

#[cfg(test)]
mod tests;
