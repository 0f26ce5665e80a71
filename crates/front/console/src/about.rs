//! The facts about a server that seldom change: they are sent only when they do.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use galatea_types::LockExt;
use serde::Serialize;

/// The ports, options and runtimes of a server. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct SharedAbout(Arc<Mutex<About>>);

/// Ports, options and runtimes of a server, as its page shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct About {
    /// The number of changes so far.
    #[serde(skip)]
    pub revision: u64,
    ports: Vec<Port>,
    options: Vec<(String, String)>,
    runtimes: BTreeMap<String, Runtime>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Port {
    service: String,
    address: String,
    is_encrypted: bool,
}

/// The library that a backend has loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Runtime {
    /// Empty if the backend reports none.
    version: String,
    path: String,
}

impl SharedAbout {
    /// Sets the current options. They contain no secrets: the log shows them at the start.
    pub fn set_options(&self, options: &[(String, String)]) {
        self.change(|about| about.options = options.to_vec());
    }

    /// Adds a port on which `service` listens.
    pub fn add_port(&self, service: &str, address: String, is_encrypted: bool) {
        let port = Port { service: service.to_owned(), address, is_encrypted };
        self.change(|about| {
            about.ports.retain(|known| known.service != port.service);
            about.ports.push(port);
        });
    }

    /// Adds the loaded library of a backend. `version` names the library too.
    pub fn add_runtime(&self, backend: &str, version: Option<String>, path: String) {
        let runtime = Runtime { version: version.unwrap_or_default(), path };
        self.change(|about| drop(about.runtimes.insert(backend.to_owned(), runtime)));
    }

    fn change(&self, change: impl FnOnce(&mut About)) {
        let mut about = self.0.lock_unpoisoned();
        about.revision += 1;
        change(&mut about);
    }

    /// Returns a copy, unless its revision is still `revision`.
    pub(crate) fn newer_than(&self, revision: Option<u64>) -> Option<About> {
        let about = self.0.lock_unpoisoned();
        (revision != Some(about.revision)).then(|| about.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_information_is_returned_once() {
        let shared = SharedAbout::default();
        let first = shared.newer_than(None).expect("the first one");
        assert_eq!(shared.newer_than(Some(first.revision)), None);
        shared.add_port("HTTP", "0.0.0.0:8000".to_owned(), false);
        shared.add_port("HTTP", "0.0.0.0:8001".to_owned(), true);
        shared.add_runtime("identity", None, "built-in".to_owned());
        shared.set_options(&[("server_id".to_owned(), "triton".to_owned())]);
        let about = shared.newer_than(Some(first.revision)).expect("what was added");
        assert_eq!(
            serde_json::to_value(&about).expect("JSON"),
            serde_json::json!({
                "ports": [{ "service": "HTTP", "address": "0.0.0.0:8001", "is_encrypted": true }],
                "options": [["server_id", "triton"]],
                "runtimes": { "identity": { "version": "", "path": "built-in" } },
            })
        );
    }
}
