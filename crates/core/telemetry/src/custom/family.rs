//! A family of metrics and its series: their labels and values.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

use galatea_types::LockExt;

use super::{error::CustomMetricError, kind::CustomMetricKind, names::is_label_name, value::Value};

/// Labels of a series, sorted by name.
pub type Labels = BTreeMap<String, String>;

pub(super) type Families = Mutex<BTreeMap<String, Weak<CustomFamily>>>;

/// A family: its name, its meaning and its series.
#[derive(Debug)]
pub struct CustomFamily {
    /// The name in the Prometheus text.
    pub name: String,
    /// The `# HELP` text; empty when there is none.
    pub description: String,
    /// The kind of value that its series hold.
    pub kind: CustomMetricKind,
    pub(super) series: Mutex<BTreeMap<Labels, Weak<Series>>>,
    pub(super) registry: Weak<Families>,
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

    pub(super) fn held(&self) -> Vec<Arc<Series>> {
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

/// A handle of a series. Clones and handles with the same labels share the value; the series is dropped with the last of them.
#[derive(Clone, Debug)]
pub struct CustomMetric(pub(super) Arc<Series>);

#[derive(Debug)]
pub(super) struct Series {
    pub family: Arc<CustomFamily>,
    pub labels: Labels,
    pub value: Value,
}

impl CustomMetric {
    /// Adds to a counter or gauge.
    ///
    /// # Errors
    ///
    /// A counter by less than 0; a histogram.
    pub fn increment(&self, by: f64) -> Result<(), CustomMetricError> {
        match &self.0.value {
            Value::Counter(_) if by < 0.0 => Err(CustomMetricError::NegativeIncrement),
            Value::Counter(value) | Value::Gauge(value) => {
                value.add(by);
                Ok(())
            }
            Value::Histogram(_) => Err(self.unsupported("Increment")),
        }
    }

    /// Sets a gauge.
    ///
    /// # Errors
    ///
    /// Anything but a gauge.
    pub fn set(&self, to: f64) -> Result<(), CustomMetricError> {
        let Value::Gauge(value) = &self.0.value else { return Err(self.unsupported("Set")) };
        value.set(to);
        Ok(())
    }

    /// Counts one observation in its bucket.
    ///
    /// # Errors
    ///
    /// Anything but a histogram.
    pub fn observe(&self, seen: f64) -> Result<(), CustomMetricError> {
        let Value::Histogram(value) = &self.0.value else {
            return Err(self.unsupported("Observe"));
        };
        value.observe(seen);
        Ok(())
    }

    /// Returns the labels of the series.
    pub fn labels(&self) -> &Labels {
        &self.0.labels
    }

    /// Returns the value of a counter or gauge.
    ///
    /// # Errors
    ///
    /// A histogram.
    pub fn value(&self) -> Result<f64, CustomMetricError> {
        match &self.0.value {
            Value::Counter(value) | Value::Gauge(value) => Ok(value.get()),
            Value::Histogram(_) => Err(self.unsupported("Value")),
        }
    }

    fn unsupported(&self, operation: &'static str) -> CustomMetricError {
        CustomMetricError::Unsupported { kind: self.0.family.kind, operation }
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        self.family.forget(&self.labels);
    }
}
