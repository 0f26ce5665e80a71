//! The tests that every backend passes, and helpers for tests of backends.
//!
//! A backend describes itself as a [`Subject`]: its models that copy their input (identity), compute sum and difference
//! (add_sub), or answer more than once (repeat), and their data types. [`run`] then checks each [`Clause`] of the contract
//! in [`crate::ModelInstance`], and fails with all violations:
//!
//! ```text
//! #[test]
//! fn conforms() {
//!     galatea_backend::testing::run(&MySubject::new());
//! }
//! ```

mod build;
mod clauses;
mod compare;
mod device;
mod late_answers;
mod model_folder;
mod outcome;
mod ragged_batches;
mod run;
mod sample;
mod streams;
mod subject;

pub use build::{
    Answer, ResponseStream, adjusted, instance_spec, load_context, pending, prepared, request,
    run_batch, run_stream, stream,
};
pub use device::FakeDevice;
pub use galatea_config::testing::{Host, changed, model_config, tensor_spec, tensors};
pub use late_answers::LateAnswers;
pub use model_folder::{Fixtures, Loader, ModelFolder, ask, floats, folder_context, infer, ints};
pub use ragged_batches::{RAGGED, RAGGED_WITH_BATCH_INPUT, check_batch_input, check_ragged};
pub use run::run;
pub use sample::{Sample, encode, sample};
pub use subject::{Clause, Fixture, Subject};
