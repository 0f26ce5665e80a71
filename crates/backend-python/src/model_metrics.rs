//! Metrics that a model defines. Those of a worker are removed when it ends.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use galatea_telemetry::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics,
};
use galatea_types::{Error, LockExt as _, Result};
use serde_json::Value;

/// Families and metrics of one worker, by their ids.
pub(crate) struct ModelMetrics {
    registry: Arc<CustomMetrics>,
    defined: Mutex<Defined>,
}

#[derive(Default)]
struct Defined {
    last_id: u64,
    families: HashMap<u64, Arc<CustomFamily>>,
    metrics: HashMap<u64, CustomMetric>,
}

/// Families and metrics of one worker together, and bytes of the texts of one: each is a line whenever somebody asks for
/// the server's metrics.
const MAX_METRICS: usize = 10_000;
const MAX_TEXT: usize = 16 << 10;
const MAX_BUCKETS: usize = 1000;

impl Defined {
    /// Whether there is room for one more, with texts of this length.
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
}

impl ModelMetrics {
    /// `registry`: what the server exports.
    pub fn new(registry: Arc<CustomMetrics>) -> Self {
        Self { registry, defined: Mutex::default() }
    }

    /// Carries out a call of the worker; `None`: its operation is not one on metrics.
    pub fn call(&self, operation: &str, fields: &Value) -> Option<Result<Value>> {
        let value = || fields.get("value").and_then(Value::as_f64).ok_or_else(|| missing("value"));
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
                self.find(fields).and_then(|m| m.value().map_err(Error::from)).map(Value::from)
            }
            _ => return None,
        })
    }

    /// Carries out a notification, which has no result.
    pub fn notify(&self, fields: &Value) {
        let id = |field| fields.get(field).and_then(Value::as_u64);
        let mut defined = self.defined.lock_unpoisoned();
        match fields.get("op").and_then(Value::as_str) {
            Some("drop_metric") => {
                id("metric").and_then(|id| defined.metrics.remove(&id));
            }
            Some("drop_family") => {
                id("family").and_then(|id| defined.families.remove(&id));
            }
            _ => {}
        }
    }

    /// Removes all of them.
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
        defined.last_id += 1;
        let id = defined.last_id;
        defined.families.insert(id, family);
        Ok(id.into())
    }

    fn add_metric(&self, fields: &Value) -> Result<Value> {
        let id = fields.get("family").and_then(Value::as_u64);
        let mut defined = self.defined.lock_unpoisoned();
        let family = id.and_then(|id| defined.families.get(&id)).cloned();
        let family = family.ok_or_else(|| missing("family"))?;
        let labels = fields.get("labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(name, value)| {
            let value = value
                .as_str()
                .ok_or_else(|| Error::invalid_arg("attempt to access JSON non-string as string"))?;
            Ok((name.clone(), value.to_owned()))
        });
        let labels = labels.collect::<Result<BTreeMap<String, String>>>()?;
        let length = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
        defined.check_room(length)?;
        let buckets = fields.get("buckets").and_then(Value::as_array);
        let buckets =
            buckets.map(|bounds| bounds.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        if buckets.as_ref().is_some_and(|bounds| bounds.len() > MAX_BUCKETS) {
            let text = format!("a histogram may not have more than {MAX_BUCKETS} buckets");
            return Err(Error::invalid_arg(text));
        }
        let metric = family.metric(labels, buckets).map_err(Error::from)?;
        defined.last_id += 1;
        let id = defined.last_id;
        defined.metrics.insert(id, metric);
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

fn missing(field: &str) -> Error {
    Error::invalid_arg(format!("'{field}' is missing or unknown"))
}
