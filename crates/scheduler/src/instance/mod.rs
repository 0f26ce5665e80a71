//! The instances of a model: one thread each, which executes batches and restarts its instance when it broke. What
//! executes the batches ([`Executor`]) may be lent to another thread while that of the instance sleeps.

mod context;
mod error;
mod executor;
mod executors;
mod health;
mod open_streams;
mod pace;
mod pipelined;
mod responses;
mod restart_backoff;
mod slot;
mod start;
mod steps;
mod thread;
mod warm_up;
mod warm_up_sample;

pub(crate) use context::ModelContext;
pub(crate) use error::InstanceError;
pub(crate) use executor::Executor;
pub(crate) use executors::Executors;
pub(crate) use health::InstanceHealth;
pub(crate) use open_streams::{OpenStream, OpenStreams};
pub(crate) use pace::Pace;
pub(crate) use responses::Responses;
pub(crate) use slot::InstanceSlot;
pub(crate) use thread::run;
pub use warm_up_sample::WarmupSample;
