//! One version of a model, from one sample to the next.

use std::{
    cmp::Reverse,
    sync::{Arc, Weak},
    time::Duration,
};

use galatea_config::Scheduling;
use galatea_engine::{IndexEntry, ServedModel};
use galatea_telemetry::{Activity, RecentDurations, StatisticsSnapshot};
use serde::Serialize;

use crate::history::VersionCounts;

/// The most batch sizes that are shown of a model: the most frequent ones.
const MOST_SIZES: usize = 64;
/// The number of samples after which the latency of an idle model is read again: durations are forgotten in steps of 12 seconds.
const QUIET_LOOKS: u32 = 12;

/// The data of one version: everything, or only the changes.
#[derive(Debug, Serialize)]
pub(crate) struct ModelRow<'a> {
    key: &'a str,
    #[serde(flatten)]
    head: Option<&'a Head>,
    #[serde(flatten)]
    facts: Option<&'a Facts>,
    #[serde(flatten)]
    figures: Option<&'a Figures>,
}

/// The identity of a version and its state.
#[derive(Debug, PartialEq, Serialize)]
struct Head {
    name: String,
    namespace: String,
    version: Option<i64>,
    state: Option<&'static str>,
    reason: String,
}

/// The properties that do not change while it is ready.
#[derive(Debug, PartialEq, Serialize)]
struct Facts {
    backend: String,
    /// The file that runs it, if that is none of the server's own backends.
    library: Option<String>,
    platform: String,
    max_batch_size: u32,
    decoupled: bool,
    ensemble: bool,
    load_s: f64,
}

/// The counters while it is ready. Times are in nanoseconds unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Figures {
    instances: Option<Instances>,
    in_flight: usize,
    pending: i64,
    counts: Counts,
    failures: Failures,
    ns: Nanoseconds,
    rates: Rates,
    latency_ms: Option<Latency>,
    batch_sizes: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Instances {
    all: usize,
    working: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Counts {
    success: u64,
    failure: u64,
    inferences: u64,
    /// Executions for requests that succeeded or failed.
    executions: u64,
    /// Items of all these executions. `inferences` omits those of failed requests, so it must not be divided by the
    /// executions.
    items: u64,
    restarts: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Failures {
    rejected: u64,
    canceled: u64,
    backend: u64,
    other: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Nanoseconds {
    success: u64,
    failure: u64,
    queue: u64,
    compute_input: u64,
    compute_infer: u64,
    compute_output: u64,
}

/// Rates per second since the previous sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Rates {
    requests: f64,
    failures: f64,
    inferences: f64,
    executions: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Latency {
    p50: f64,
    p90: f64,
    p99: f64,
    mean: f64,
    count: u64,
}

/// A version that is followed. While it is ready, the durations of its requests are recorded.
#[derive(Debug)]
pub(crate) struct FollowedVersion {
    key: String,
    head: Head,
    facts: Option<Facts>,
    figures: Option<Figures>,
    /// Weak, so that it can be unloaded meanwhile.
    served: Weak<ServedModel>,
    activity: Activity,
    quiet_looks: u32,
    changed: ChangedFields,
}

/// The differences from the data that was sent last.
#[derive(Clone, Copy, Debug, Default)]
struct ChangedFields {
    head: bool,
    facts: bool,
    figures: bool,
}

impl FollowedVersion {
    /// Follows a version that was not followed before.
    pub fn new(key: String, entry: IndexEntry, served: Option<&Arc<ServedModel>>) -> Self {
        let changed = ChangedFields { head: true, ..ChangedFields::default() };
        let mut new = Self {
            key,
            head: Head::from(entry),
            facts: None,
            figures: None,
            served: Weak::new(),
            activity: Activity::default(),
            quiet_looks: 0,
            changed,
        };
        new.serve(served);
        new
    }

    pub fn update(&mut self, entry: IndexEntry, served: Option<&Arc<ServedModel>>) {
        let head = Head::from(entry);
        self.changed.head |= head != self.head;
        self.head = head;
        if !is_same(&self.served, served) {
            self.serve(served);
        }
    }

    /// Sets the served model of the version, after a load, a reload or an unload.
    fn serve(&mut self, served: Option<&Arc<ServedModel>>) {
        self.served = served.map_or_else(Weak::new, Arc::downgrade);
        self.facts = served.map(|model| Facts::of(model));
        self.figures = None;
        self.activity = Activity::default();
        (self.changed.facts, self.changed.figures) = (served.is_some(), false);
        if let Some(model) = served {
            model.statistics().set_watched(true);
        }
    }

    pub fn sample(&mut self, elapsed: Duration) {
        let Some(model) = self.served.upgrade() else { return };
        let activity = model.statistics().activity();
        let is_active = self.figures.is_none() || activity != self.activity;
        self.activity = activity;
        let mut figures = self.figures.clone().unwrap_or_default();
        figures.in_flight = model.in_flight();
        figures.pending = activity.pending;
        let instances = model.instance_counts();
        figures.instances = instances.map(|(all, working)| Instances { all, working });
        if is_active {
            let before = self.figures.as_ref().map(|figures| figures.counts);
            figures.count(model.statistics().snapshot());
            figures.rates = before.map_or_else(Rates::default, |before| {
                Rates::between(before, figures.counts, elapsed)
            });
        } else {
            figures.rates = Rates::default();
        }
        self.quiet_looks = if is_active { 0 } else { self.quiet_looks + 1 };
        if self.quiet_looks.is_multiple_of(QUIET_LOOKS) {
            figures.latency_ms = model.statistics().recent().map(Latency::from);
        }
        self.changed.figures |= self.figures.as_ref() != Some(&figures);
        self.figures = Some(figures);
    }

    pub fn leave(&self) {
        if let Some(model) = self.served.upgrade() {
            model.statistics().set_watched(false);
        }
    }

    /// Returns its counts at the last sample, for the history; `None` if it is not ready.
    pub fn counted(&self) -> Option<(&str, VersionCounts)> {
        let Figures { counts, ns, pending, in_flight, .. } = self.figures.as_ref()?;
        let counted = VersionCounts {
            succeeded: counts.success,
            failed: counts.failure,
            inferences: counts.inferences,
            pending: *pending,
            in_flight: *in_flight,
            ns: [ns.success, ns.queue, ns.compute_input, ns.compute_infer, ns.compute_output],
        };
        Some((&self.key, counted))
    }

    pub fn row(&self) -> ModelRow<'_> {
        ModelRow {
            key: &self.key,
            head: Some(&self.head),
            facts: self.facts.as_ref(),
            figures: self.figures.as_ref(),
        }
    }

    /// Returns the changes; `None` if there are none.
    pub fn changed_row(&self) -> Option<ModelRow<'_>> {
        let ChangedFields { head, facts, figures } = self.changed;
        (head || facts || figures).then(|| ModelRow {
            key: &self.key,
            head: head.then_some(&self.head),
            facts: self.facts.as_ref().filter(|_| facts),
            figures: self.figures.as_ref().filter(|_| figures),
        })
    }

    /// Records that all changes were sent.
    pub fn clear_changes(&mut self) {
        self.changed = ChangedFields::default();
    }
}

fn is_same(before: &Weak<ServedModel>, now: Option<&Arc<ServedModel>>) -> bool {
    match now {
        Some(now) => Weak::as_ptr(before) == Arc::as_ptr(now),
        None => before.strong_count() == 0 && Weak::ptr_eq(before, &Weak::new()),
    }
}

impl From<IndexEntry> for Head {
    fn from(entry: IndexEntry) -> Self {
        let IndexEntry { name, namespace, version, state, reason, excerpt } = entry;
        // The excerpt says the same and more.
        let reason = if excerpt.is_empty() { reason } else { excerpt };
        Self { name, namespace, version, state, reason }
    }
}

impl Facts {
    fn of(model: &ServedModel) -> Self {
        let config = model.config();
        Self {
            backend: config.backend().to_owned(),
            library: model.library().map(|path| path.display().to_string()),
            platform: config.platform().to_owned(),
            max_batch_size: config.max_batch_size(),
            decoupled: config.is_decoupled(),
            ensemble: matches!(config.scheduling(), Scheduling::Ensemble(_)),
            load_s: rounded(model.load_duration().as_secs_f64()),
        }
    }
}

impl Figures {
    fn count(&mut self, counted: StatisticsSnapshot) {
        self.counts = Counts {
            success: counted.success.count,
            failure: counted.fail.count,
            inferences: counted.inference_count,
            executions: counted.execution_count,
            items: counted.executed_items(),
            restarts: counted.restarts,
        };
        let [rejected, canceled, backend, other] = counted.failures;
        self.failures = Failures { rejected, canceled, backend, other };
        self.ns = Nanoseconds {
            success: counted.success.ns,
            failure: counted.fail.ns,
            queue: counted.queue.ns,
            compute_input: counted.compute_input.ns,
            compute_infer: counted.compute_infer.ns,
            compute_output: counted.compute_output.ns,
        };
        let sizes = counted.batches.iter();
        let mut sizes: Vec<_> = sizes.map(|(size, s)| (*size, s.compute_infer.count)).collect();
        if sizes.len() > MOST_SIZES {
            sizes.sort_by_key(|(_, count)| Reverse(*count));
            sizes.truncate(MOST_SIZES);
            sizes.sort_unstable();
        }
        self.batch_sizes = sizes;
    }
}

impl Rates {
    fn between(before: Counts, now: Counts, elapsed: Duration) -> Self {
        let seconds = elapsed.as_secs_f64().max(0.001);
        let rate =
            |of: fn(&Counts) -> u64| rounded(of(&now).saturating_sub(of(&before)) as f64 / seconds);
        Self {
            requests: rate(|c| c.success + c.failure),
            failures: rate(|c| c.failure),
            inferences: rate(|c| c.inferences),
            executions: rate(|c| c.executions),
        }
    }
}

impl From<RecentDurations> for Latency {
    fn from(recent: RecentDurations) -> Self {
        let millis = |micros: u64| micros as f64 / 1000.0;
        Self {
            p50: millis(recent.p50),
            p90: millis(recent.p90),
            p99: millis(recent.p99),
            mean: rounded(recent.mean / 1000.0),
            count: recent.count,
        }
    }
}

/// Rounds to three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::BatchRecord;

    use super::*;

    #[test]
    fn rates_are_per_second() {
        let before =
            Counts { success: 10, failure: 1, inferences: 20, executions: 5, ..Counts::default() };
        let now =
            Counts { success: 30, failure: 2, inferences: 60, executions: 15, ..Counts::default() };
        let rates = Rates::between(before, now, Duration::from_secs(2));
        let expected = Rates { requests: 10.5, failures: 0.5, inferences: 20.0, executions: 5.0 };
        assert_eq!(rates, expected);
    }

    #[test]
    fn items_of_failed_executions_are_counted() {
        let statistics = galatea_telemetry::ModelStatistics::default();
        for inferences in [2, 0, 0] {
            let batch = BatchRecord { batch_size: 2, inferences, ..BatchRecord::default() };
            statistics.record_execution(&batch, []);
        }
        let mut figures = Figures::default();
        figures.count(statistics.snapshot());
        let Counts { inferences, executions, items, .. } = figures.counts;
        assert_eq!((inferences, executions, items), (2, 3, 6));
    }

    #[test]
    fn the_most_frequent_batch_sizes_are_shown() {
        let mut counted = StatisticsSnapshot::default();
        for size in 1..=200 {
            let batch = counted.batches.entry(size).or_default();
            batch.compute_infer.count = if size % 4 == 0 { 1000 + size } else { 1 };
        }
        let mut figures = Figures::default();
        figures.count(counted);
        assert_eq!(figures.batch_sizes.len(), MOST_SIZES);
        assert!(figures.batch_sizes.is_sorted());
        assert!(figures.batch_sizes.contains(&(200, 1200)));
    }
}
