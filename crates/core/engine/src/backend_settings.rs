//! Settings from `--backend-config`, by backend.

use std::collections::BTreeMap;

/// Settings of backends. Those of one backend override those for all.
#[derive(Clone, Debug, Default)]
pub struct BackendSettings(BTreeMap<String, BTreeMap<String, String>>);

impl BackendSettings {
    /// Sets one value; the last call counts. `backend` is its name, or empty for all backends.
    pub fn set(&mut self, backend: &str, key: &str, value: &str) {
        let settings = self.0.entry(backend.to_owned()).or_default();
        settings.insert(key.to_owned(), value.to_owned());
    }

    /// Returns the settings of one backend: those for all backends, overlaid with its own.
    pub fn of(&self, backend: &str) -> BTreeMap<String, String> {
        self.overlaid(&[backend])
    }

    /// Returns the settings of a backend that is built on others: those for all backends, overlaid with those of each of
    /// `backends` in turn.
    pub fn overlaid(&self, backends: &[&str]) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        for own in [""].iter().chain(backends).filter_map(|backend| self.0.get(*backend)) {
            settings.extend(own.clone());
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_settings_override_general_settings() {
        let mut settings = BackendSettings::default();
        settings.set("", "a", "all");
        settings.set("", "b", "all");
        settings.set("x", "b", "first");
        settings.set("x", "b", "last");
        let of = |backend| settings.of(backend).into_values().collect::<Vec<_>>();
        assert_eq!(of("x"), ["all", "last"]);
        assert_eq!(of("y"), ["all", "all"]);
        assert_eq!(of(""), ["all", "all"]);
        settings.set("on_x", "c", "own");
        let overlaid = settings.overlaid(&["x", "on_x"]);
        assert_eq!(overlaid.into_values().collect::<Vec<_>>(), ["all", "last", "own"]);
    }
}
