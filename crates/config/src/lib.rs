//! `config.pbtxt` as written, and as checked.
//!
//! Two stages: [`RawModelConfig`] is the protobuf message exactly as the file (or a JSON override) gives it,
//! kept for echoing over the wire; [`ModelConfig`] is what the server works with, in which wrong states
//! cannot be held. Nothing here walks a file system.

mod model_config;

pub use galatea_proto::inference::ModelConfig as RawModelConfig;
pub use model_config::{
    DynamicBatching, Format, InstanceGroup, InstanceKind, ModelConfig, QueuePolicy, Scheduling,
    TensorSpec, TimeoutAction, VersionPolicy,
};
