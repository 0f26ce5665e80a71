//! Sequences: the instance and slot of each, and which of its requests is next.
//!
//! A sequence has one slot of one instance from its first request to its last. Its requests are executed there, one after
//! the other. While all slots are taken, new sequences wait in a backlog. A slot that becomes free takes the oldest of
//! them with all its requests. There are two strategies of batching:
//! - *direct*: a batch has a row for each slot up to the last one with a request. A slot without a request gets a row that
//!   is not ready, so that the model finds each sequence in the same row ([`slots::DirectSlots`]);
//! - *oldest*: at most one request of each sequence waits in an ordinary batching queue ([`slots::OldestSlots`]).
//!
//! [`Sequences`] and its parts are pure: they use no thread, lock or clock. [`crate::request_queue`] handles the threads
//! that wait for a decision. [`inputs::SequenceInputs`] makes the inputs for the model outside of the queue's lock.
//!
//! # Invariants
//! - Requests of a sequence are executed in the order of arrival, never two of them at a time.
//! - A slot belongs to one sequence at a time. The states after an execution count only if the slot still has the
//!   sequence that was executed ([`SlotTicket::generation`]), so that no state reaches another sequence.
//! - A sequence that lost a request unexecuted, or its instance, is over: none of its requests is executed any more.

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
