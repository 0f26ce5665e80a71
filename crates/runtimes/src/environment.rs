use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// Environment variables: the process's, or given ones (for tests, which must not touch the process's).
#[derive(Clone, Debug, Default)]
pub struct Environment(Option<BTreeMap<String, OsString>>);

impl Environment {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self(None)
    }

    pub fn of<K: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self(Some(variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect()))
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<OsString> {
        let value = match &self.0 {
            None => env::var_os(name),
            Some(variables) => variables.get(name).cloned(),
        };
        value.filter(|v| !v.is_empty())
    }

    /// A variable as text; one that is not UTF-8 counts as not set.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}
