use std::{error, fmt};

/// Why a family or series could not be made or changed. The message is Triton's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomMetricError {
    /// A name, a bucket list or a value that is not allowed.
    InvalidArgument(String),
    /// The kind of the metric does not know the operation.
    Unsupported(String),
}

impl CustomMetricError {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    pub fn message(&self) -> &str {
        match self {
            Self::InvalidArgument(message) | Self::Unsupported(message) => message,
        }
    }
}

impl fmt::Display for CustomMetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl error::Error for CustomMetricError {}
