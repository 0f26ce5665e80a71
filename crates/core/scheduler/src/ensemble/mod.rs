//! Ensembles: one request runs through a graph of models.
//!
//! Ensembles have no threads of their own. The thread that brings the last input of a step submits the step: the front
//! end's thread for the first steps, then the thread of the model that responded. Tensors are passed from step to step
//! by reference. Only their names change, and their shapes between models with and without a batch dimension.
//!
//! # Invariants
//! - Names are resolved at load: a request works only with numbers of steps and slots of tensors.
//! - No lock is held while a request is submitted to a model or a response is sent.
//! - An ensemble keeps the models of its steps until its last request is answered. So a reload or an unload of one
//!   fails no request in progress.

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
