//! The interface between the server and the libraries that run models.
//!
//! There are three stages, from shared and immutable to owned by one thread. A [`Backend`] is opened once. A [`Model`] is
//! loaded once per version and shared by its instances (weights belong here). A [`ModelInstance`] is used by exactly one
//! thread at a time.
//!
//! This crate uses no runtime library and no async runtime.

#![warn(missing_docs)]

mod alarm;
mod batch;
pub mod batching;
mod completion;
pub mod declared;
mod devices;
mod inspector;
mod output_buffer;
mod path_rules;
mod pending;
mod pipeline;
mod response_sender;
mod sequence_states;
mod server_access;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;
mod traits;
mod version_files;

pub use alarm::InstanceAlarm;
pub use batch::{Batch, BatchExit, Outcome};
pub use completion::{complete_scheduling, complete_tensors, draft_of, has_all_tensors};
pub use devices::Devices;
pub use inspector::{Inspector, MOST_MISTAKES, MissingModelInfo};
pub use output_buffer::OutputBuffer;
pub use path_rules::{PathError, PathRules, relative_inside};
pub use pending::{NOT_ITERATIVE, PendingRequest};
pub use pipeline::{Pipeline, ReturnedRequests, WaitingBatches};
pub use response_sender::{RequestEnd, RequestObserver, ResponseSender, TakenRequest};
pub use sequence_states::{SequenceState, SequenceStates, StateMemory};
pub use server_access::{InferTarget, ModelControl, ServerAccess};
pub use settings::Settings;
pub use traits::{Backend, CompletionContext, InstanceSpec, LoadContext, Model, ModelInstance};
pub use version_files::{explain, misconfigured};
