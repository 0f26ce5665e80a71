//! The families of models.

use std::{collections::BTreeMap, time::Duration};

use super::text::{Labels, Text};
use crate::distributions::DistributionsSnapshot;
use crate::families::{
    ADMISSION_LIMIT, BATCH_DELAY, BATCH_SIZE_HISTOGRAM, CACHE_COUNTERS, CACHE_SUMMARIES,
    EXECUTIONS, EXECUTIONS_ON_CONNECTION_THREADS, FAILURE, FIRST_RESPONSE_HISTOGRAM, Family,
    IN_FLIGHT, INFERENCES, INSTANCES, INSTANCES_WORKING, LOAD, LOAD_DURATION, MODEL_LOAD, PENDING,
    PHASE_COUNTERS, PHASE_HISTOGRAMS, PHASE_SUMMARIES, REFUSED, RESTARTS, RUNNING, SUCCESS,
    WAITING,
};
use crate::server_load::ServerCounts;
use crate::statistics::{FailureReason, RefusalReason, StatisticsSnapshot};

/// A loaded model version, as seen at the moment of a scrape.
#[derive(Clone, Copy, Debug)]
pub struct ModelMetrics<'a> {
    /// Label `namespace`; left out when empty.
    pub namespace: &'a str,
    /// Label `model`.
    pub name: &'a str,
    /// Label `version`.
    pub version: i64,
    /// `metric_tags` of the configuration: each becomes a label `_{key}`.
    pub tags: &'a BTreeMap<String, String>,
    /// Its counters.
    pub statistics: &'a StatisticsSnapshot,
    /// Its histograms and summaries.
    pub distributions: &'a DistributionsSnapshot,
    /// Duration of its last load.
    pub load_duration: Duration,
    /// Requests that wait or are executed.
    pub in_flight: usize,
    /// Its instances; `None` for an ensemble.
    pub instances: Option<InstanceCounts>,
    /// The learned batch delay, when the delay is learned.
    pub batch_delay: Option<Duration>,
    /// The places that its requests may take in an overload, with admission.
    pub admission_limit: Option<u32>,
    /// The load of its instances, relative to their capacity; `None` for an ensemble.
    pub load: Option<f64>,
    /// The model uses the response cache.
    pub has_cache: bool,
}

/// The instances of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounts {
    /// All instances.
    pub all: usize,
    /// Instances that are not being restarted.
    pub working: usize,
}

/// The models of a page, each with the labels that all its samples have.
pub(super) struct Models<'a>(Vec<(Labels, ModelMetrics<'a>)>);

impl<'a> Models<'a> {
    pub fn new(models: &[ModelMetrics<'a>]) -> Self {
        let labels = |m: &ModelMetrics<'_>| Labels::new(m.tags, m.name, m.namespace, m.version);
        Self(models.iter().map(|model| (labels(model), *model)).collect())
    }

    /// Writes the counters; with `has_latencies`, also those of durations.
    pub fn write_counters(&self, text: &mut Text, has_latencies: bool) {
        self.write(text, &SUCCESS, |model| model.statistics.success.count);
        self.write_by_reason(text, &FAILURE, |model| {
            FailureReason::ALL.map(FailureReason::label).into_iter().zip(model.statistics.failures)
        });
        self.write(text, &INFERENCES, |model| model.statistics.inference_count);
        self.write(text, &EXECUTIONS, |model| model.statistics.execution_count);
        if has_latencies {
            for (phase, family) in PHASE_COUNTERS.iter().enumerate() {
                self.write(text, family, |model| {
                    model.statistics.phases().get(phase).map_or(0, |counted| counted.ns / 1000)
                });
            }
            self.write_cache_counters(text);
        }
    }

    fn write_cache_counters(&self, text: &mut Text) {
        for (number, family) in CACHE_COUNTERS.iter().enumerate() {
            self.write_present(text, family, |text, family, labels, model| {
                let StatisticsSnapshot { cache_hit, cache_miss, .. } = model.statistics;
                let counted =
                    [cache_hit.count, cache_hit.ns / 1000, cache_miss.count, cache_miss.ns / 1000];
                if let Some(value) = counted.get(number).filter(|_| model.has_cache) {
                    text.of_model(family, labels, value);
                }
            });
        }
    }

    pub fn write_gauges(&self, text: &mut Text) {
        self.write(text, &PENDING, |model| model.statistics.pending);
        self.write(text, &LOAD_DURATION, |model| model.load_duration.as_secs_f64());
    }

    /// Writes the distributions that Triton has. A family that no model has is not announced.
    pub fn write_distributions(&self, text: &mut Text) {
        self.write_present(text, &FIRST_RESPONSE_HISTOGRAM, |text, family, labels, model| {
            let Some(histogram) = &model.distributions.first_response else { return };
            text.histogram(family, labels, histogram, histogram.sum());
        });
        for (phase, family) in PHASE_SUMMARIES.iter().enumerate() {
            self.write_present(text, family, |text, family, labels, model| {
                // As in Triton: hits and executions together would be the durations of neither.
                let is_shown = phase > 0 || !model.has_cache;
                let summaries = model.distributions.summaries.as_ref().filter(|_| is_shown);
                let Some(summary) = summaries.and_then(|all| all.get(phase)) else { return };
                text.summary(family, labels, summary, &model.distributions.quantiles);
            });
        }
        for (number, family) in CACHE_SUMMARIES.iter().enumerate() {
            self.write_present(text, family, |text, family, labels, model| {
                let summaries = model.distributions.of_cache.as_ref();
                let Some(summary) = summaries.and_then(|all| all.get(number)) else { return };
                text.summary(family, labels, summary, &model.distributions.quantiles);
            });
        }
    }

    /// Writes the families that Triton does not have.
    pub fn write_own(&self, text: &mut Text) {
        for (phase, family) in PHASE_HISTOGRAMS.iter().enumerate() {
            self.write_present(text, family, |text, family, labels, model| {
                let phases = model.distributions.histograms.as_ref().map(|h| &h.phases);
                let Some(histogram) = phases.and_then(|all| all.get(phase)) else { return };
                // The sum of the same requests, without the rounding errors of adding fractions.
                let ns = model.statistics.phases().get(phase).map_or(0, |counted| counted.ns);
                text.histogram(family, labels, histogram, Duration::from_nanos(ns).as_secs_f64());
            });
        }
        self.write_present(text, &BATCH_SIZE_HISTOGRAM, |text, family, labels, model| {
            let Some(histograms) = &model.distributions.histograms else { return };
            let sizes = &histograms.batch_size;
            text.histogram(family, labels, sizes, sizes.sum());
        });
        self.write_by_reason(text, &REFUSED, |model| {
            RefusalReason::ALL.map(RefusalReason::label).into_iter().zip(model.statistics.refused)
        });
        self.write(text, &IN_FLIGHT, |model| model.in_flight);
        self.write_instances(text, &INSTANCES, |counts, _| counts.all as u64);
        self.write_instances(text, &INSTANCES_WORKING, |counts, _| counts.working as u64);
        self.write_instances(text, &RESTARTS, |_, statistics| statistics.restarts);
        self.write_instances(text, &EXECUTIONS_ON_CONNECTION_THREADS, |_, statistics| {
            statistics.executions_in_place
        });
        self.write_present(text, &BATCH_DELAY, |text, family, labels, model| {
            if let Some(delay) = model.batch_delay {
                text.of_model(family, labels, delay.as_secs_f64());
            }
        });
        self.write_present(text, &ADMISSION_LIMIT, |text, family, labels, model| {
            if let Some(limit) = model.admission_limit {
                text.of_model(family, labels, limit);
            }
        });
        self.write_load(text);
    }

    /// Writes the load of each model and of the server. The server's load is that of its most loaded model: a server is full when
    /// one of its models can take no more.
    fn write_load(&self, text: &mut Text) {
        self.each(text, &MODEL_LOAD, |text, labels, model| {
            if let Some(load) = model.load {
                text.of_model(&MODEL_LOAD, labels, load);
            }
        });
        let mut counts = ServerCounts::default();
        for (_, model) in &self.0 {
            if let Some(load) = model.load {
                let waiting = u64::try_from(model.statistics.pending).unwrap_or(0);
                counts.load = counts.load.max(load);
                counts.add(waiting, model.in_flight as u64);
            }
        }
        write_counts(text, counts);
    }

    /// Writes the samples of each model, with the head of the family if there are any.
    fn write_present(
        &self,
        text: &mut Text,
        family: &Family,
        write: impl Fn(&mut Text, &Family, &Labels, &ModelMetrics<'a>),
    ) {
        let mut samples = Text::default();
        for (labels, model) in &self.0 {
            write(&mut samples, family, labels, model);
        }
        text.append_family(family, samples);
    }

    fn write_instances(
        &self,
        text: &mut Text,
        family: &Family,
        value: impl Fn(InstanceCounts, &StatisticsSnapshot) -> u64,
    ) {
        self.each(text, family, |text, labels, model| {
            if let Some(counts) = model.instances {
                text.of_model(family, labels, value(counts, model.statistics));
            }
        });
    }

    fn write<V: std::fmt::Display>(
        &self,
        text: &mut Text,
        family: &Family,
        value: impl Fn(&ModelMetrics<'a>) -> V,
    ) {
        self.each(text, family, |text, labels, model| text.of_model(family, labels, value(model)));
    }

    fn write_by_reason<I: Iterator<Item = (&'static str, u64)>>(
        &self,
        text: &mut Text,
        family: &Family,
        counts: impl Fn(&ModelMetrics<'a>) -> I,
    ) {
        self.each(text, family, |text, labels, model| {
            counts(model).for_each(|(reason, n)| text.with_reason(family, labels, reason, n));
        });
    }

    /// Writes the head of the family, and the samples of each model.
    fn each(
        &self,
        text: &mut Text,
        family: &Family,
        write: impl Fn(&mut Text, &Labels, &ModelMetrics<'a>),
    ) {
        text.family(family);
        self.0.iter().for_each(|(labels, model)| write(text, labels, model));
    }
}

/// Writes the figures of all models together, which have no labels.
pub(super) fn write_counts(text: &mut Text, counts: ServerCounts) {
    text.single(&LOAD, counts.load);
    text.single(&WAITING, counts.waiting);
    text.single(&RUNNING, counts.running);
}
