//! What tells models of one name apart.

use std::{fmt, sync::Arc};

/// A model: its name, and its namespace where several repositories may hold models of one name.
///
/// Clients know names only. Ordered by namespace, then name, as the index is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModelId {
    /// The repository, as the user named it. Empty where names are unique in the server, and for a model whose files
    /// came with a load request.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ModelId {
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// A model of no namespace.
    pub fn global(name: impl Into<Arc<str>>) -> Self {
        Self::new("", name)
    }

    /// Another model of the same namespace.
    pub fn sibling(&self, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: self.namespace.clone(), name: name.into() }
    }
}

/// As log and errors name it.
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
