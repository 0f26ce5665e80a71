//! Which waiting requests are executed next, and together: priorities, time-outs, the rules of batching.
//!
//! Everything here is pure. No thread, no lock and no clock is known: the time is handed in, and who waits for
//! a decision is the business of [`crate::request_queue`].

mod auto_delay;
mod backlog;
mod batching;
mod fair_list;
mod join_rules;
mod levels;
mod priority_queue;
mod queued;

pub(crate) use backlog::Backlog;
pub(crate) use batching::{Decision, GrowingBatch};
pub(crate) use join_rules::{Extent, JoinRules};
pub(crate) use priority_queue::DropReason;
pub(crate) use queued::{Placement, Queued};

#[cfg(test)]
mod tests;
