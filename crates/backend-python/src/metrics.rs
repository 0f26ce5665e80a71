//! Metrics that a model defines. What a worker made goes when it ends.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use galatea_telemetry::{CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind};
use galatea_types::{Error, Result};
use serde_json::Value;

use crate::link::Link;

/// Families and metrics of one worker, by the numbers it knows them by.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<Held>);

#[derive(Default)]
struct Held {
    last: u64,
    families: HashMap<u64, Arc<CustomFamily>>,
    metrics: HashMap<u64, CustomMetric>,
}

impl Metrics {
    /// Answers an operation; `None`: it is not one on metrics.
    pub fn answer(link: &Link, operation: &str, ask: &Value) -> Option<Result<Value>> {
        let metrics = &link.metrics;
        let value = || ask.get("value").and_then(Value::as_f64).ok_or_else(|| missing("value"));
        let done = |result: Result<()>| result.map(|()| Value::Null);
        let change = |change: fn(&CustomMetric, f64) -> Result<(), CustomMetricError>| {
            let metric = metrics.find(ask)?;
            change(&metric, value()?).map_err(told)
        };
        Some(match operation {
            "metric_family" => metrics.add_family(link, ask),
            "metric" => metrics.add_metric(ask),
            "metric_increment" => done(change(CustomMetric::increment)),
            "metric_set" => done(change(CustomMetric::set)),
            "metric_observe" => done(change(CustomMetric::observe)),
            "metric_value" => {
                metrics.find(ask).and_then(|m| m.value().map_err(told)).map(Value::from)
            }
            _ => return None,
        })
    }

    /// Carries out what needs no answer.
    pub fn tell(&self, told: &Value) {
        let number = |field| told.get(field).and_then(Value::as_u64);
        let mut held = self.lock();
        match told.get("op").and_then(Value::as_str) {
            Some("drop_metric") => {
                number("metric").and_then(|n| held.metrics.remove(&n));
            }
            Some("drop_family") => {
                number("family").and_then(|n| held.families.remove(&n));
            }
            _ => {}
        }
    }

    pub fn clear(&self) {
        *self.lock() = Held::default();
    }

    fn add_family(&self, link: &Link, ask: &Value) -> Result<Value> {
        let kind = match text(ask, "kind")? {
            "counter" => CustomMetricKind::Counter,
            "gauge" => CustomMetricKind::Gauge,
            "histogram" => CustomMetricKind::Histogram,
            _ => return Err(Error::invalid_arg("unknown metric kind")),
        };
        let description = text(ask, "description")?;
        let family = link.server.metrics.family(text(ask, "name")?, description, kind);
        let family = family.map_err(told)?;
        let mut held = self.lock();
        held.last += 1;
        let number = held.last;
        held.families.insert(number, family);
        Ok(number.into())
    }

    fn add_metric(&self, ask: &Value) -> Result<Value> {
        let number = ask.get("family").and_then(Value::as_u64);
        let mut held = self.lock();
        let family = number.and_then(|number| held.families.get(&number)).cloned();
        let family = family.ok_or_else(|| missing("family"))?;
        let labels = ask.get("labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(name, value)| {
            let value = value
                .as_str()
                .ok_or_else(|| Error::invalid_arg("attempt to access JSON non-string as string"))?;
            Ok((name.clone(), value.to_owned()))
        });
        let labels = labels.collect::<Result<_>>()?;
        let buckets = ask.get("buckets").and_then(Value::as_array);
        let buckets = buckets.map(|bounds| bounds.iter().filter_map(Value::as_f64).collect());
        let metric = family.metric(labels, buckets).map_err(told)?;
        held.last += 1;
        let number = held.last;
        held.metrics.insert(number, metric);
        Ok(number.into())
    }

    fn find(&self, ask: &Value) -> Result<CustomMetric> {
        let number = ask.get("metric").and_then(Value::as_u64);
        let metric = number.and_then(|number| self.lock().metrics.get(&number).cloned());
        metric.ok_or_else(|| missing("metric"))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text<'a>(ask: &'a Value, field: &str) -> Result<&'a str> {
    ask.get(field).and_then(Value::as_str).ok_or_else(|| missing(field))
}

fn missing(field: &str) -> Error {
    Error::invalid_arg(format!("'{field}' is missing or unknown"))
}

fn told(error: CustomMetricError) -> Error {
    match error {
        CustomMetricError::InvalidArgument(text) => Error::invalid_arg(text),
        CustomMetricError::Unsupported(text) => Error::unsupported(text),
    }
}
