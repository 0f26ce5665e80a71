//! The instances of a model. Each has a thread, which executes batches and restarts the instance after a failure. While
//! that thread sleeps, another thread may borrow the instance's [`Executor`].

mod context;
mod execution_pace;
mod executor;
mod pipeline;
mod responses;
mod restart_backoff;
mod slot;
mod steps;
mod thread;
mod warm_up;

pub(crate) use context::ModelContext;
pub use context::WarmupSample;
pub(crate) use execution_pace::ExecutionPace;
pub(crate) use executor::{Executor, Executors};
pub(crate) use responses::Responses;
pub(crate) use slot::InstanceSlot;
pub(crate) use thread::run;
