//! Distinguishes models with the same name.

use std::{fmt, sync::Arc};

use galatea_telemetry::metrics::VersionLabels;

/// A model: its name, and its namespace if several repositories may have models of one name.
///
/// Clients know only names. Ordered by namespace and name, like the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModelId {
    /// The repository, as the user named it. Empty if names are unique in the server, and for a model from the files of a load
    /// request.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ModelId {
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns a model without a namespace.
    pub fn global(name: impl Into<Arc<str>>) -> Self {
        Self::new("", name)
    }

    /// Returns another model in the same namespace.
    pub fn sibling(&self, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: self.namespace.clone(), name: name.into() }
    }

    /// Returns the labels of a version in metrics; `None` when the version is not known.
    pub fn labels(&self, version: Option<i64>) -> VersionLabels<'_> {
        VersionLabels { name: &self.name, namespace: &self.namespace, version }
    }
}

/// Writes the model as log and errors name it.
impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        if namespace.is_empty() { f.write_str(name) } else { write!(f, "{namespace}::{name}") }
    }
}

#[cfg(test)]
impl From<&str> for ModelId {
    fn from(name: &str) -> Self {
        Self::global(name)
    }
}
