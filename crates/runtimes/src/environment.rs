//! Environment variables as a value, so that only the program itself reads those of the process.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::Arc,
};

/// Environment variables that were handed in: those of the process, or a test's own. The default has none.
#[derive(Clone, Debug, Default)]
pub struct Environment(Arc<BTreeMap<String, OsString>>);

impl Environment {
    /// Of names and values. The program collects those of its process like this; a library never does.
    pub fn of<K: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Arc::new(variables.collect()))
    }

    /// Whether a variable is set, be it to nothing.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// A variable as text; one that is not UTF-8 counts as not set.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    /// A variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}
