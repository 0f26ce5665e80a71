use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// What kind of value a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomMetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// Metric families that models define themselves (M-38): created, changed and dropped while the server runs,
/// shown after the server's own.
#[derive(Debug, Default)]
pub struct CustomMetrics {
    families: Mutex<BTreeMap<String, Arc<CustomFamily>>>,
}

/// One family: a name, what it means, and its series.
#[derive(Debug)]
pub struct CustomFamily {
    pub name: String,
    pub description: String,
    pub kind: CustomMetricKind,
}

impl CustomMetrics {
    /// Names of the families, sorted.
    pub fn names(&self) -> Vec<String> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}
