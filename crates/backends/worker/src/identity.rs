//! The name of a worker in log lines and errors.

use std::{fmt, sync::Arc};

/// Which model and instance a worker runs.
#[derive(Clone, Debug)]
pub struct WorkerIdentity {
    /// What it is called in errors, e.g. `Python worker`.
    pub role: &'static str,
    /// The name of the model.
    pub model: Arc<str>,
    /// Of the model, for the fields of log lines.
    pub version: i64,
    /// `None`: a worker that only completes a configuration.
    pub instance: Option<String>,
}

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model '{}'", self.model)?;
        self.instance.as_ref().map_or(Ok(()), |instance| write!(f, " (instance '{instance}')"))
    }
}
