//! Reads and checks `config.pbtxt`.
//!
//! Two stages: [`RawModelConfig`] is the protobuf message exactly as the file (or a JSON override) gives it, kept to be returned
//! to clients. [`ModelConfig`] is the form that the server uses, which cannot hold wrong states. Nothing here walks a file
//! system.
//!
//! A configuration is made in four steps:
//! 1. [`parse_text`] (a file) or [`parse_json`] (an override) gives the raw message;
//! 2. [`resolve_backend`] finds the backend, which may then complete the [`ConfigDraft`];
//! 3. [`normalize`] fills in the defaults;
//! 4. [`ModelConfig::check`] refuses a configuration that cannot work and returns the checked form.

#![warn(missing_docs)]

mod backend_advice;
mod backend_table;
mod check;
mod diagnostic;
mod draft;
mod field_path;
mod files;
mod instance_groups;
mod json;
mod model;
mod normalize;
mod reference;
mod schema;
mod source;
mod support;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;

pub use backend_advice::{TENSORRT_ENGINE, backend_advice};
pub use backend_table::{ENSEMBLE_PLATFORM, MODEL_FILES, ModelFile, backend_for_platform};
pub use check::CheckContext;
pub use diagnostic::{Diagnostic, Part, Place, Position, Severity, coloured, plain};
pub use draft::{ConfigDraft, TensorDraft};
pub use field_path::{FieldPath, Step};
pub use galatea_proto::inference::ModelConfig as RawModelConfig;
pub use instance_groups::{
    PreferredGroup, differ_in_instances_only, with_instances_of, with_preferred_group,
};
pub use json::{is_strict_json, parse_json, to_json};
pub use model::{
    Accelerator, BatchInput, BatchInputKind, BatchOutput, BatchOutputKind, ControlKind,
    DynamicBatching, EnsembleStep, Ensembling, FalseTrue, InitialData, InitialState, InstanceGroup,
    InstanceKind, MissingGpus, ModelConfig, ModelPriority, Optimization, PaddedInput, PaddedOutput,
    Padding, PaddingMask, QueuePolicy, RateLimiter, RateLimiterResource, RepositoryAgent,
    Scheduling, SequenceBatching, SequenceControl, SequenceState, SequenceStrategy, TensorSpec,
    TimeoutAction, VersionPolicy, Warmup, WarmupData, WarmupInput, names_of,
};
pub use normalize::{NormalizeContext, NormalizedConfig, normalize, resolve_backend};
pub use reference::reference;
pub use schema::prepare;
pub use source::ConfigSource;
pub use text::{TextError, parse_text, to_text};
