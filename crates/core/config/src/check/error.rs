//! Everything the checks refuse, in Triton's words.

use super::{
    batch_delay::BatchDelayError, batch_io::BatchIoError, ensemble::EnsembleError,
    instance_groups::InstanceGroupError, limits::LimitError, metrics::MetricsError,
    names::NameError, padding::PaddingError, response_cache::ResponseCacheError,
    scheduling::BatchingError, sequence::SequenceError, states::StateError, tensors::TensorError,
    warmup::WarmupError,
};

/// Why a configuration cannot work: by the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Name, platform or backend.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No version policy, which only a configuration without defaults can lack.
    #[error("must specify 'version policy' for {model}")]
    NoVersionPolicy {
        /// The model.
        model: String,
    },
    /// A count beyond what the server makes.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// `max_batch_size`.
    #[error("'max_batch_size' must be non-negative value for {model}")]
    NegativeBatchSize {
        /// The model.
        model: String,
    },
    /// An input or output.
    #[error("{error} for {model}")]
    Tensor {
        /// The model.
        model: String,
        /// What is wrong.
        error: TensorError,
    },
    /// `batch_input` or `batch_output`.
    #[error("{error} for {model}")]
    BatchIo {
        /// The model.
        model: String,
        /// What is wrong.
        error: BatchIoError,
    },
    /// The parameters `pad_batches`.
    #[error("{error} for {model}")]
    Padding {
        /// The model.
        model: String,
        /// What is wrong.
        error: PaddingError,
    },
    /// `instance_group`.
    #[error(transparent)]
    InstanceGroup(#[from] InstanceGroupError),
    /// `dynamic_batching`, or the preferred sizes of sequences.
    #[error("{error} for {model}")]
    Batching {
        /// The model.
        model: String,
        /// What is wrong.
        error: BatchingError,
    },
    /// The parameter `batch_delay`.
    #[error(transparent)]
    BatchDelay(#[from] BatchDelayError),
    /// `sequence_batching`.
    #[error("{error} for {model}{}", error.explanation())]
    Sequence {
        /// The model.
        model: String,
        /// What is wrong.
        error: SequenceError,
    },
    /// A state of `sequence_batching`.
    #[error(transparent)]
    State(#[from] StateError),
    /// `ensemble_scheduling`.
    #[error(transparent)]
    Ensemble(#[from] EnsembleError),
    /// `response_cache`.
    #[error(transparent)]
    ResponseCache(#[from] ResponseCacheError),
    /// `model_metrics`.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// `model_warmup`.
    #[error(transparent)]
    Warmup(#[from] WarmupError),
}
