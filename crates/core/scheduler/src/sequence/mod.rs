//! Requests that belong together: which instance and slot a sequence has, and which of its requests is next.
//!
//! A sequence has one slot of one instance from its first request to its last; its requests are executed there, one after
//! the other. While all slots are taken, new sequences wait in a backlog, and a slot that becomes free takes the oldest of
//! them with all its requests. Two strategies decide what is executed together:
//! - *direct*: a batch has a row for each slot up to the last one with a request; a slot without one gets a row that is
//!   not ready, so that the model finds each sequence in the same row ([`slots::DirectSlots`]);
//! - *oldest*: at most one request of each sequence waits in an ordinary batching queue ([`slots::OldestSlots`]).
//!
//! [`Sequences`] and what it is made of are pure: no thread, no lock, no clock. Who sleeps until a decision is
//! [`crate::request_queue`]'s business, and the inputs that the model gets are made outside of its lock, by
//! [`inputs::SequenceInputs`].
//!
//! # Invariants
//! - Requests of a sequence are executed in the order of arrival, never two of them at a time.
//! - A slot belongs to one sequence at a time. What an execution leaves as state counts only if the slot still has the
//!   sequence that was executed ([`SlotTicket::generation`]), so that no state comes to another one.
//! - A sequence that lost one of its requests unexecuted, or its instance, is over: nothing of it is executed any more.

mod backlog;
mod inputs;
mod key;
mod rules;
mod sequences;
mod slots;
mod step;
#[cfg(test)]
mod tests;

pub(crate) use inputs::SequenceInputs;
pub(crate) use key::SequenceRequest;
pub(crate) use rules::SequenceRules;
pub use rules::TestHold;
#[cfg(test)]
pub(crate) use sequences::PushedRequest;
pub(crate) use sequences::{SequenceDrop, SequenceRefusal, Sequences};
pub(crate) use step::{SlotTicket, Step, StepEnd};
