//! Errors of the families and series that models define.

use galatea_types::Error;

use super::kind::CustomMetricKind;

/// The reason why a family or series could not be made or changed. The texts are Triton's: models match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomMetricError {
    /// The name of a family has other characters than Prometheus allows.
    #[error("Invalid metric name")]
    FamilyName,
    /// The server itself has a family of this name.
    #[error("Family name already exists")]
    FamilyOfServer,
    /// Another model has a family of this name, and of another kind.
    #[error("Family name already exists with different type")]
    FamilyOfOtherKind,
    /// The name of a label has other characters than Prometheus allows, or is `le` of a histogram.
    #[error("Invalid label name")]
    LabelName,
    /// A histogram has no buckets.
    #[error("Bucket boundaries not found in Metric args.")]
    NoBuckets,
    /// The buckets do not ascend strictly, or one is no number.
    #[error("Bucket Boundaries must be strictly sorted")]
    UnsortedBuckets,
    /// Buckets were given for a kind that has none.
    #[error("Unexpected args found in {} Metric constructor.", .0.name())]
    UnexpectedBuckets(CustomMetricKind),
    /// A counter only grows.
    #[error(
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
    )]
    NegativeIncrement,
    /// The kind of the metric does not have the operation.
    #[error("TRITONSERVER_METRIC_KIND_{} does not support {operation}", .kind.name().to_ascii_uppercase())]
    Unsupported {
        /// The kind of the family.
        kind: CustomMetricKind,
        /// The operation as Triton's API names it.
        operation: &'static str,
    },
}

impl From<CustomMetricError> for Error {
    fn from(error: CustomMetricError) -> Self {
        match error {
            CustomMetricError::Unsupported { .. } => Error::unsupported(error.to_string()),
            _ => Error::invalid_arg(error.to_string()),
        }
    }
}
