//! Decides which waiting requests are executed next and together: priorities, time-outs and the rules of batching.
//!
//! Everything here is pure: it uses no thread, lock or clock. Callers pass the time, and [`crate::request_queue`] handles
//! the threads that wait for a decision.

mod auto_delay;
mod backlog;
mod batching;
mod fair_list;
mod join_rules;
mod levels;
mod priority_queue;
mod queue_entry;

pub(crate) use backlog::Backlog;
pub(crate) use batching::{Decision, GrowingBatch};
pub(crate) use join_rules::{Extent, JoinRules};
pub(crate) use priority_queue::DropReason;
pub(crate) use queue_entry::{Placement, QueueEntry};

#[cfg(test)]
mod tests;
