//! Metrics that a model defines. A worker's metrics are removed when it ends.
//!
//! A family of the worker holds its series. A model that asks for the same labels in each execution gets the existing
//! series. They are removed with the family, whatever metrics the model still keeps.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use galatea_telemetry::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics,
};
use galatea_types::{Error, LockExt as _, Result};
use serde_json::Value;

type Labels = BTreeMap<String, String>;

/// Families and metrics of one worker, by their ids.
pub(crate) struct ModelMetrics {
    registry: Arc<CustomMetrics>,
    defined: Mutex<Defined>,
}

#[derive(Default)]
struct Defined {
    last_id: u64,
    families: HashMap<u64, Family>,
    metrics: HashMap<u64, CustomMetric>,
}

/// A family that one object of the model holds.
struct Family {
    family: Arc<CustomFamily>,
    /// Ids of its series.
    series: BTreeMap<Labels, u64>,
}

/// Most families and metrics of one worker together, and most bytes of the texts of one. Each is a line of every reading of
/// the server's metrics.
const MAX_METRICS: usize = 10_000;
const MAX_TEXT: usize = 16 << 10;
const MAX_BUCKETS: usize = 1000;

impl Defined {
    /// Checks that there is room for one more, with texts of this length.
    fn check_room(&self, text: usize) -> Result<()> {
        if self.families.len() + self.metrics.len() >= MAX_METRICS {
            let text = format!("a model may not define more than {MAX_METRICS} metrics");
            return Err(Error::unavailable(text));
        }
        if text > MAX_TEXT {
            let text = format!("the texts of a metric may not be longer than {MAX_TEXT} bytes");
            return Err(Error::invalid_arg(text));
        }
        Ok(())
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn remove_family(&mut self, id: u64) {
        let series = self.families.remove(&id).map(|held| held.series).unwrap_or_default();
        for id in series.values() {
            self.metrics.remove(id);
        }
    }
}

impl ModelMetrics {
    /// Makes the metrics of a worker, to be exported by `registry`.
    pub fn new(registry: Arc<CustomMetrics>) -> Self {
        Self { registry, defined: Mutex::default() }
    }

    /// Executes a call of the worker. Returns `None` if it is not about metrics.
    pub fn call(&self, operation: &str, fields: &Value) -> Option<Result<Value>> {
        let value = || fields.get("value").and_then(number).ok_or_else(|| missing("value"));
        let done = |result: Result<()>| result.map(|()| Value::Null);
        let change = |change: fn(&CustomMetric, f64) -> Result<(), CustomMetricError>| {
            let metric = self.find(fields)?;
            change(&metric, value()?).map_err(Error::from)
        };
        Some(match operation {
            "metric_family" => self.add_family(fields),
            "metric" => self.add_metric(fields),
            "metric_increment" => done(change(CustomMetric::increment)),
            "metric_set" => done(change(CustomMetric::set)),
            "metric_observe" => done(change(CustomMetric::observe)),
            "metric_value" => {
                let value = self.find(fields).and_then(|m| m.value().map_err(Error::from));
                value.map(|value| value.to_string().into())
            }
            _ => return None,
        })
    }

    /// Executes a notification, which has no result.
    pub fn notify(&self, fields: &Value) {
        if fields.get("op").and_then(Value::as_str) == Some("drop_family") {
            let id = fields.get("family").and_then(Value::as_u64).unwrap_or_default();
            self.defined.lock_unpoisoned().remove_family(id);
        }
    }

    /// Removes all families and metrics.
    pub fn clear(&self) {
        *self.defined.lock_unpoisoned() = Defined::default();
    }

    fn add_family(&self, fields: &Value) -> Result<Value> {
        let kind = match text(fields, "kind")? {
            "counter" => CustomMetricKind::Counter,
            "gauge" => CustomMetricKind::Gauge,
            "histogram" => CustomMetricKind::Histogram,
            _ => return Err(Error::invalid_arg("unknown metric kind")),
        };
        let (name, description) = (text(fields, "name")?, text(fields, "description")?);
        self.defined.lock_unpoisoned().check_room(name.len() + description.len())?;
        let family = self.registry.family(name, description, kind);
        let family = family.map_err(Error::from)?;
        let mut defined = self.defined.lock_unpoisoned();
        let id = defined.next_id();
        defined.families.insert(id, Family { family, series: BTreeMap::new() });
        Ok(id.into())
    }

    fn add_metric(&self, fields: &Value) -> Result<Value> {
        let labels = labels(fields)?;
        let buckets = buckets(fields)?;
        let family_id = fields.get("family").and_then(Value::as_u64).unwrap_or_default();
        let mut defined = self.defined.lock_unpoisoned();
        let held = defined.families.get(&family_id).ok_or_else(|| missing("family"))?;
        let (family, known) = (held.family.clone(), held.series.get(&labels).copied());
        if known.is_none() {
            let length = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
            defined.check_room(length)?;
        }
        let metric = family.metric(labels.clone(), buckets).map_err(Error::from)?;
        if let Some(id) = known {
            return Ok(id.into());
        }
        let id = defined.next_id();
        defined.metrics.insert(id, metric);
        if let Some(held) = defined.families.get_mut(&family_id) {
            held.series.insert(labels, id);
        }
        Ok(id.into())
    }

    fn find(&self, fields: &Value) -> Result<CustomMetric> {
        let id = fields.get("metric").and_then(Value::as_u64);
        let metric = id.and_then(|id| self.defined.lock_unpoisoned().metrics.get(&id).cloned());
        metric.ok_or_else(|| missing("metric"))
    }
}

fn text<'a>(fields: &'a Value, field: &str) -> Result<&'a str> {
    fields.get(field).and_then(Value::as_str).ok_or_else(|| missing(field))
}

fn labels(fields: &Value) -> Result<Labels> {
    let labels = fields.get("labels").and_then(Value::as_object).into_iter().flatten();
    let text = |(name, value): (&String, &Value)| {
        let value = value
            .as_str()
            .ok_or_else(|| Error::invalid_arg("attempt to access JSON non-string as string"))?;
        Ok((name.clone(), value.to_owned()))
    };
    labels.map(text).collect()
}

fn buckets(fields: &Value) -> Result<Option<Vec<f64>>> {
    let Some(bounds) = fields.get("buckets").and_then(Value::as_array) else { return Ok(None) };
    if bounds.len() > MAX_BUCKETS {
        let text = format!("a histogram may not have more than {MAX_BUCKETS} buckets");
        return Err(Error::invalid_arg(text));
    }
    let bounds = bounds.iter().map(|bound| number(bound).ok_or_else(|| missing("buckets")));
    bounds.collect::<Result<_>>().map(Some)
}

/// Reads a number from text: JSON has neither infinity nor NaN.
fn number(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok()
}

fn missing(field: &str) -> Error {
    Error::invalid_arg(format!("'{field}' is missing or unknown"))
}
