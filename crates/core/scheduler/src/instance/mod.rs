//! The instances of a model: one thread each, which executes batches and restarts its instance when it broke. What
//! executes the batches ([`Executor`]) may be lent to another thread while that of the instance sleeps.

mod context;
mod executor;
mod pace;
mod pipelined;
mod responses;
mod restart_backoff;
mod slot;
mod steps;
mod thread;
mod warm_up;

pub(crate) use context::ModelContext;
pub use context::WarmupSample;
pub(crate) use executor::{Executor, Executors};
pub(crate) use pace::ExecutionPace;
pub(crate) use responses::Responses;
pub(crate) use slot::InstanceSlot;
pub(crate) use thread::run;
