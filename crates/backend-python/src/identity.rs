use std::{fmt, sync::Arc};

/// Whose worker it is: for the log and for messages.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub model: Arc<str>,
    /// `None`: a worker that only completes a configuration.
    pub instance: Option<String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model '{}'", self.model)?;
        self.instance.as_ref().map_or(Ok(()), |instance| write!(f, " (instance '{instance}')"))
    }
}
