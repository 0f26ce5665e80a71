//! Queues, batching and the instance threads that pull from them.
//!
//! No runtime library and no async runtime is known here.

mod scheduler;

pub use scheduler::{Scheduler, SchedulerSpec};
