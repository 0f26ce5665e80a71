//! The load of the whole server, sampled with the loads of its models.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use galatea_system::{GroupProcessors, ProcessorUse};
use galatea_telemetry::{ModelLoad, Progress, ServerCounts, ServerLoad};
use galatea_types::{LockExt, MemoryBudget};

use crate::{lifecycle::Generation, served_model::ServedModel};

/// The shortest time that rates cover, if that much is recorded.
const WINDOW: Duration = Duration::from_secs(1);
/// The largest number of samples kept, however often they are taken.
const MAX_SAMPLES: usize = 64;

/// Samples the load of the server. A reader takes the last sample and waits for nothing.
#[derive(Default)]
pub(crate) struct LoadSampler {
    latest: ArcSwap<ServerLoad>,
    recorded: Mutex<LoadHistory>,
}

#[derive(Default)]
struct LoadHistory {
    processors: Option<GroupProcessors>,
    /// The counts of each version at the last sample. Those of an unloaded one stay in `total`.
    of_models: BTreeMap<Generation, Progress>,
    total: Progress,
    /// Only the first is older than the window.
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    total: Progress,
    processors: Option<ProcessorUse>,
}

impl LoadSampler {
    pub fn latest(&self) -> Arc<ServerLoad> {
        self.latest.load_full()
    }

    /// Takes a sample of these models, which are all that are ready.
    pub fn sample(&self, models: &[Arc<ServedModel>], now: Instant, memory: &MemoryBudget) {
        let mut counts = ServerCounts::default();
        let mut loads = Vec::with_capacity(models.len());
        for model in models {
            count_requests(model, &mut counts);
            if let Some(load) = model.load(now) {
                counts.load = counts.load.max(load);
                loads.push(ModelLoad { name: model.id.name.clone(), load });
            }
        }
        ModelLoad::sort(&mut loads);
        let progress = models.iter().map(|model| (model.generation, model.statistics().progress()));
        let (before, sample) = self.recorded.lock_unpoisoned().add(progress, now);
        let load = ServerLoad {
            counts,
            memory: memory.used() as f64 / memory.limit().max(1) as f64,
            models: loads,
            ..rates(before, sample)
        };
        self.latest.store(Arc::new(load));
    }
}

/// Adds the requests of a model to the counts, unless others execute them.
pub(crate) fn count_requests(model: &ServedModel, counts: &mut ServerCounts) {
    if model.instances.is_some() {
        counts.add(model.statistics().pending(), model.in_flight() as u64);
    }
}

impl LoadHistory {
    /// Adds a sample. Returns it after the one that rates begin with.
    fn add(
        &mut self,
        models: impl Iterator<Item = (Generation, Progress)>,
        now: Instant,
    ) -> (Sample, Sample) {
        let mut of_models = BTreeMap::new();
        for (generation, progress) in models {
            let earlier = self.of_models.get(&generation).copied().unwrap_or_default();
            self.total.add_since(earlier, progress);
            of_models.insert(generation, progress);
        }
        self.of_models = of_models;
        let processors = self.processors.get_or_insert_with(GroupProcessors::find).read();
        let sample = Sample { at: now, total: self.total, processors };
        let is_old = |old: &Sample| now.saturating_duration_since(old.at) >= WINDOW;
        while self.samples.get(1).is_some_and(is_old) || self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        let before = self.samples.front().copied().unwrap_or(sample);
        self.samples.push_back(sample);
        (before, sample)
    }
}

/// Returns the figures of the time between two samples.
fn rates(before: Sample, sample: Sample) -> ServerLoad {
    let elapsed = sample.at.saturating_duration_since(before.at);
    if elapsed.is_zero() {
        return ServerLoad::default();
    }
    let mut done = Progress::default();
    done.add_since(before.total, sample.total);
    let wait = done.queue.ns.checked_div(done.queue.count).unwrap_or_default();
    let processors = sample.processors.zip(before.processors);
    ServerLoad {
        processors: processors.and_then(|(now, earlier)| now.share_since(earlier, elapsed)),
        requests_per_second: done.ended as f64 / elapsed.as_secs_f64(),
        failures_per_second: done.failed as f64 / elapsed.as_secs_f64(),
        mean_wait: Duration::from_nanos(wait),
        ..ServerLoad::default()
    }
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::DurationCount;

    use super::*;

    fn progress(ended: u64, failed: u64, wait_ms: u64) -> Progress {
        let count = ended - failed;
        Progress { ended, failed, queue: DurationCount { count, ns: wait_ms * 1_000_000 } }
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let (mut recorded, start) = (LoadHistory::default(), Instant::now());
        let mut add = |half_seconds: u32, models: &[(u64, Progress)]| {
            let models = models.iter().map(|(number, counted)| (Generation(*number), *counted));
            let now = start + Duration::from_millis(500) * half_seconds;
            let (before, sample) = recorded.add(models, now);
            rates(before, sample)
        };
        assert_eq!(add(0, &[(1, progress(100, 0, 0))]).requests_per_second, 0.0);
        add(1, &[(1, progress(110, 0, 40))]);
        let load = add(2, &[(1, progress(130, 5, 100))]);
        assert_eq!((load.requests_per_second, load.failures_per_second), (30.0, 5.0));
        assert_eq!(load.mean_wait, Duration::from_millis(4));
        // An unloaded model takes nothing away, and a new one begins at zero.
        let load = add(3, &[(2, progress(6, 0, 0))]);
        assert_eq!((load.requests_per_second, load.failures_per_second), (26.0, 5.0));
        let load = add(20, &[(2, progress(6, 0, 0))]);
        assert_eq!((load.requests_per_second, load.mean_wait), (0.0, Duration::ZERO));
    }
}
