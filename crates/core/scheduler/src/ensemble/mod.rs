//! Ensembles: one request runs through a graph of models.
//!
//! There is no thread of its own here. A step is submitted as soon as all it reads is there, by the thread
//! that brought the last of it: the front end's for the first steps, then that of the model which responded.
//! Tensors go from step to step by reference; only their names and, at the border between models that batch
//! and models that do not, their shapes change.
//!
//! # Invariants
//! - Names are resolved at load: a request only works with numbers of steps and slots of tensors.
//! - No lock is held while a request is submitted to a model or a response is sent.
//! - An ensemble keeps the models it runs on until its last request is answered, so neither a reload nor an
//!   unload of one fails a request under way.

mod dispatch;
mod ensemble_scheduler;
mod graph;
mod limiter;
mod plan;
mod progress;
mod round;
mod run;
mod sequence_info;
mod shape;
mod shared;

pub use ensemble_scheduler::{EnsembleScheduler, EnsembleSpec};
pub use graph::StepModel;
