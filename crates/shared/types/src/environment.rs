//! Environment variables as a value, so that only the program itself reads those of the process.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::Arc,
};

/// Environment variables that were passed in: those of the process, or a test's own. The default has none.
#[derive(Clone, Debug, Default)]
pub struct Environment(Arc<BTreeMap<String, OsString>>);

impl Environment {
    /// Makes it from names and values.
    pub fn of<K: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Arc::new(variables.collect()))
    }

    /// Returns whether a variable is set, even if it is empty.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// Returns all variables, for a process that will be started.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.iter().map(|(name, value)| (name.into(), value.clone()))
    }

    /// Returns a variable as text; one that is not UTF-8 counts as not set.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    /// Returns a variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}

/// Collects the variables of the process. Only the program does this, a library never does. It leaves out names that are not
/// UTF-8, because nothing reads them.
impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self::of(variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value))))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn non_text_names_are_skipped_and_empty_values_count_as_unset() {
        let pair = |name: &[u8], value: &str| (OsString::from_vec(name.to_vec()), value.into());
        let environment: Environment =
            [pair(b"A", "1"), pair(b"B", ""), pair(b"\xff", "2")].into_iter().collect();
        assert_eq!(environment.text("A").as_deref(), Some("1"));
        assert!(environment.is_set("B") && environment.get("B").is_none());
        assert_eq!(environment.0.len(), 2);
    }
}
