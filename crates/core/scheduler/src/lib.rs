//! Queues, batching and the instance threads that pull from them.
//!
//! A request changes threads twice: from the front end to the instance thread that executes it, and back. There is no
//! batcher thread in between: an idle instance forms its batch itself, from the requests that wait at that moment.
//!
//! # Invariants
//! - The scheduler uses no runtime library, no async runtime, no socket and no wire format.
//! - Every accepted request gets exactly one final response, even after a panic, an expiry or a close. A refused
//!   request is given back with the error.
//! - A client that has its response finds it counted in the statistics.
//! - A broken instance gets no work until it is restarted, and no instance is dropped while one of its streams is open.
//! - The rules of batching (`queue`) use no clock and no thread; only `parking` knows which threads sleep.
//! - Only `accounting` writes statistics and logs failed requests.

#![warn(missing_docs)]

mod accounting;
mod admission;
mod cached;
mod completion;
mod ensemble;
mod execution_rules;
mod in_flight;
mod instance;
mod load;
mod model_shape;
mod open_streams;
mod parking;
mod queue;
mod queue_scheduler;
mod queued_request;
mod rate_limiter;
mod request_failure;
mod request_queue;
mod scheduler;
mod sequence;
mod sequence_memory;
mod sync;

pub use admission::{Admission, AdmittingScheduler};
pub use cached::{CachedScheduler, CachedSpec};
pub use ensemble::{EnsembleScheduler, EnsembleSpec, StepModel};
pub use execution_rules::ExecutionRules;
pub use instance::WarmupSample;
pub use queue_scheduler::{QueueScheduler, SchedulerSpec};
pub use rate_limiter::{RateLimiter, ResourceSupply};
pub use scheduler::Scheduler;
pub use sequence::TestHold;
pub use sequence_memory::SequenceMemory;
