//! Metric families that models define themselves: `pb_utils.MetricFamily` of the Python backend.
//!
//! A family lives as long as a reference to it or to one of its series; a series lives as long as a handle of it. The maps hold
//! weak references only, and the drop of a family or series removes its entry.

mod error;
mod series;
#[cfg(test)]
mod tests;
mod text;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

use galatea_types::LockExt;

use self::series::{Series, Value};
use crate::metrics;

pub use self::{error::CustomMetricError, series::CustomMetric};

/// The kind of value that a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomMetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by bucket.
    Histogram,
}

/// Labels of a series, sorted by name.
pub type Labels = BTreeMap<String, String>;

type Families = Mutex<BTreeMap<String, Weak<CustomFamily>>>;

/// The metric families that models define. Models create, change and drop them while the server runs; they come after the
/// server's own families.
#[derive(Debug, Default)]
pub struct CustomMetrics {
    families: Arc<Families>,
}

/// A family: its name, its meaning and its series.
#[derive(Debug)]
pub struct CustomFamily {
    /// The name in the Prometheus text.
    pub name: String,
    /// The `# HELP` text; empty when there is none.
    pub description: String,
    /// The kind of value that its series hold.
    pub kind: CustomMetricKind,
    series: Mutex<BTreeMap<Labels, Weak<Series>>>,
    registry: Weak<Families>,
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
        check_family_name(name)?;
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

impl CustomFamily {
    /// Returns a handle of the series with these labels, and makes the series if there is none. `buckets` are the upper bounds of
    /// a histogram; a series that exists keeps its own.
    ///
    /// # Errors
    ///
    /// `Invalid label name`; buckets missing or not strictly ascending; buckets for another kind.
    pub fn metric(
        self: &Arc<Self>,
        labels: Labels,
        buckets: Option<Vec<f64>>,
    ) -> Result<CustomMetric, CustomMetricError> {
        let value = Value::new(self.kind, buckets)?;
        if !labels.keys().all(|name| is_label_name(name, self.kind)) {
            return Err(CustomMetricError::LabelName);
        }
        let mut all = self.series.lock_unpoisoned();
        let series = all.get(&labels).and_then(Weak::upgrade).unwrap_or_else(|| {
            let series = Arc::new(Series { family: self.clone(), labels: labels.clone(), value });
            all.insert(labels, Arc::downgrade(&series));
            series
        });
        Ok(CustomMetric(series))
    }

    fn held(&self) -> Vec<Arc<Series>> {
        self.series.lock_unpoisoned().values().filter_map(Weak::upgrade).collect()
    }

    /// Removes the entry of a series that was dropped, unless a new series has replaced it.
    fn forget(&self, labels: &Labels) {
        let mut all = self.series.lock_unpoisoned();
        if all.get(labels).is_some_and(|series| series.strong_count() == 0) {
            all.remove(labels);
        }
    }
}

impl Drop for CustomFamily {
    fn drop(&mut self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let mut families = registry.lock_unpoisoned();
        if families.get(&self.name).is_some_and(|family| family.strong_count() == 0) {
            families.remove(&self.name);
        }
    }
}

fn check_family_name(name: &str) -> Result<(), CustomMetricError> {
    if !is_name(name, |c| c == ':') {
        return Err(CustomMetricError::FamilyName);
    }
    if metrics::is_server_family(name) {
        return Err(CustomMetricError::FamilyOfServer);
    }
    Ok(())
}

/// Returns whether `name` can be a label. `le` is the histogram's own label.
fn is_label_name(name: &str, kind: CustomMetricKind) -> bool {
    is_name(name, |_| false) && !(kind == CustomMetricKind::Histogram && name == "le")
}

/// Matches `[a-zA-Z_][a-zA-Z0-9_]*` with `extra` allowed anywhere; two leading underscores are Prometheus's own.
fn is_name(name: &str, extra: fn(char) -> bool) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || extra(c);
    name.starts_with(is_start)
        && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !name.starts_with("__")
}
