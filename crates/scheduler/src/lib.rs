//! Queues, batching and the instance threads that pull from them.
//!
//! A request changes threads twice: from the front end to the instance thread that executes it, and back.
//! There is no batcher thread in between: an idle instance forms its batch itself, out of what waits at
//! that moment.
//!
//! # Invariants
//! - No runtime library, no async runtime, no socket and no wire format is known here.
//! - Every request that is submitted gets exactly one final answer, whatever panics, expires or closes.
//! - What a client reads in its answer is already counted in the statistics.
//! - An instance that says it broke gets no work until it was made anew, and no instance goes while a stream
//!   is open.
//! - The rules of batching (`policy`, `queue`) know no clock and no thread.
//!
//! Not here yet: thread priority by `optimization.priority` (S-02), sequences, rate limiter.

mod completion;
mod desk;
mod ensemble;
mod execution;
mod health;
mod instance;
mod join;
mod line;
mod open_requests;
mod pace;
mod policy;
mod queue;
mod scheduler;
mod ticket;

pub use ensemble::{EnsembleScheduler, EnsembleSpec, StepModel};
pub use scheduler::{QueueScheduler, Scheduler, SchedulerSpec};
