//! Metric families that models define themselves: `pb_utils.MetricFamily` of the Python backend.
//!
//! A family lives as long as a reference to it or to one of its series; a series lives as long as a handle of it. The maps hold
//! weak references only, and the drop of a family or series removes its entry.

mod error;
mod family;
mod kind;
mod names;
#[cfg(test)]
mod tests;
mod text;
mod value;

use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, Ordering},
};

use galatea_types::LockExt;

pub use self::{
    error::CustomMetricError,
    family::{CustomFamily, CustomMetric, Labels},
    kind::CustomMetricKind,
};
use self::{family::Families, names::is_name};
use crate::metrics;

/// The metric families that models define. Models create, change and drop them while the server runs; they come after the
/// server's own families.
#[derive(Debug, Default)]
pub struct CustomMetrics {
    families: Arc<Families>,
    /// The server has no cache in its memory, whose families are free for that of a library.
    lends_cache: AtomicBool,
}

impl CustomMetrics {
    /// Returns the family `name`, and makes it if there is none. A family that exists keeps its first description.
    ///
    /// # Errors
    ///
    /// `Invalid metric name`; the name belongs to a family of another kind or to one of the server's own.
    pub fn family(
        &self,
        name: &str,
        description: &str,
        kind: CustomMetricKind,
    ) -> Result<Arc<CustomFamily>, CustomMetricError> {
        check_family_name(name, self.lends_cache.load(Ordering::Relaxed))?;
        // The lock is free again outside the block: dropping a family takes it.
        let family = {
            let mut families = self.families.lock_unpoisoned();
            families.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
                let family = Arc::new(self.new_family(name, description, kind));
                families.insert(name.to_owned(), Arc::downgrade(&family));
                family
            })
        };
        if family.kind == kind { Ok(family) } else { Err(CustomMetricError::FamilyOfOtherKind) }
    }

    /// Lets others define the families of the response cache in memory. Called if the cache is a library, which counts itself.
    pub fn lend_cache_families(&self) {
        self.lends_cache.store(true, Ordering::Relaxed);
    }

    /// Returns the names of the families, sorted.
    pub fn names(&self) -> Vec<String> {
        self.families.lock_unpoisoned().keys().cloned().collect()
    }

    /// Returns at most `most` handles of the series of a family, by labels; none when there is no such family.
    pub fn series(&self, family: &str, most: usize) -> Vec<CustomMetric> {
        let family = self.families.lock_unpoisoned().get(family).and_then(Weak::upgrade);
        let Some(family) = family else { return Vec::new() };
        let series = family.series.lock_unpoisoned();
        let held: Vec<_> =
            series.values().take(most).filter_map(Weak::upgrade).map(CustomMetric).collect();
        // The lock is released before the handles: dropping a last handle takes it.
        drop(series);
        held
    }

    /// Appends all families that have a series in Prometheus text form, sorted by name, their series by labels.
    pub fn render_into(&self, out: &mut String) {
        for family in self.held() {
            let series = family.held();
            if !series.is_empty() {
                text::write_family(out, &family, &series);
            }
        }
    }

    fn held(&self) -> Vec<Arc<CustomFamily>> {
        self.families.lock_unpoisoned().values().filter_map(Weak::upgrade).collect()
    }

    fn new_family(&self, name: &str, description: &str, kind: CustomMetricKind) -> CustomFamily {
        CustomFamily {
            name: name.to_owned(),
            description: description.to_owned(),
            kind,
            series: Mutex::default(),
            registry: Arc::downgrade(&self.families),
        }
    }
}

fn check_family_name(name: &str, lends_cache: bool) -> Result<(), CustomMetricError> {
    if !is_name(name, |c| c == ':') {
        return Err(CustomMetricError::FamilyName);
    }
    let is_lent = lends_cache && metrics::is_cache_family(name);
    if metrics::is_server_family(name) && !is_lent {
        return Err(CustomMetricError::FamilyOfServer);
    }
    Ok(())
}
