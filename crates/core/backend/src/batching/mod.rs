//! Shared code of backends that join requests along the first dimension: from the requests of a batch to the model's inputs,
//! and from its outputs to responses. It uses no runtime library.
//!
//! A backend describes how a group of requests runs as a [`GroupRunner`]; [`execute`] does the rest.

mod cut;
mod execute;
mod generated_input;
mod join;
mod model_output;
mod padding;
pub mod reshape;
mod split;

pub use execute::{GroupRunner, execute};
pub use join::{Content, JoinedInput, missing};
pub use model_output::{ModelOutput, other_type};
