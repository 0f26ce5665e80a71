//! Measures the load of a model's instances: the share of the last second in which they were busy, plus the queue,
//! counted in rounds of executions.
//!
//! [`LoadMeter::sample`] records samples twice a second. Readers compare the present with a second ago and change nothing.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use galatea_types::LockExt;

use super::BusyTime;

/// The shortest time that a load covers, if that much is recorded.
const WINDOW: Duration = Duration::from_secs(1);

/// The largest number of samples kept: more than a window has, however often samples are taken.
const MAX_SAMPLES: usize = 64;

/// The load of a model's instances and queue over the last second.
#[derive(Default)]
pub(crate) struct LoadMeter(Mutex<NotedChange>);

#[derive(Default)]
struct NotedChange {
    instances: Vec<Arc<BusyTime>>,
    /// The busy time of removed instances.
    ended: Duration,
    /// Only the first is older than the window.
    samples: VecDeque<Sample>,
}

/// The instances of a model, and the size of their executions, at this moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// All its instances.
    pub instances: usize,
    /// Its working instances.
    pub working: usize,
    /// The largest number of requests in one execution, if each has one item.
    pub per_execution: usize,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    /// The busy time of all instances until then.
    busy: Duration,
    /// The number of requests that waited then.
    queued: u64,
}

impl LoadMeter {
    /// Adds an idle instance. It is removed when the returned value is dropped.
    pub fn add_instance(&self, now: Instant) -> Arc<BusyTime> {
        let busy = Arc::new(BusyTime::new(now));
        self.0.lock_unpoisoned().instances.push(busy.clone());
        busy
    }

    /// Records a sample for later readers. `queued` is the number of waiting requests.
    pub fn sample(&self, now: Instant, queued: u64) {
        let mut noted = self.0.lock_unpoisoned();
        noted.forget_ended(now);
        let sample = noted.at(now, queued);
        let samples = &mut noted.samples;
        samples.push_back(sample);
        while samples.get(1).is_some_and(|second| second.is_old(now)) || samples.len() > MAX_SAMPLES
        {
            samples.pop_front();
        }
    }

    /// Returns the busy share of the working instances, 0 to 1, plus the queue in rounds of executions. Both are averages
    /// since the last sample that is as old as the window, or since the first sample.
    pub fn load(&self, now: Instant, queued: u64, capacity: Capacity) -> f64 {
        let noted = self.0.lock_unpoisoned();
        let latest = noted.at(now, queued);
        let first = noted.samples.iter().rposition(|sample| sample.is_old(now)).unwrap_or(0);
        let since = noted.samples.range(first..);
        let Some(begin) = since.clone().next() else { return capacity.rounds(queued as f64) };
        let elapsed = now.saturating_duration_since(begin.at).as_secs_f64();
        if elapsed <= 0.0 {
            return capacity.rounds(queued as f64);
        }
        let busy = latest.busy.saturating_sub(begin.busy).as_secs_f64() / elapsed;
        let later = since.clone().skip(1).chain([&latest]);
        let queued: f64 = since.clone().zip(later).map(|(a, b)| a.waited_until(b)).sum();
        capacity.share(busy) + capacity.rounds(queued / elapsed)
    }
}

impl NotedChange {
    fn at(&self, now: Instant, queued: u64) -> Sample {
        let working: Duration = self.instances.iter().map(|busy| busy.until(now)).sum();
        Sample { at: now, busy: self.ended + working, queued }
    }

    /// Keeps the busy time of removed instances, so that the sum never falls.
    fn forget_ended(&mut self, now: Instant) {
        let Self { instances, ended, .. } = self;
        instances.retain(|busy| {
            let is_gone = Arc::strong_count(busy) == 1;
            if is_gone {
                *ended += busy.until(now);
            }
            !is_gone
        });
    }
}

impl Sample {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= WINDOW
    }

    /// Returns the seconds that all requests waited together until a later sample, if their number changed evenly.
    fn waited_until(&self, later: &Sample) -> f64 {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64();
        (self.queued + later.queued) as f64 / 2.0 * seconds
    }
}

impl Capacity {
    /// Returns the busy share; `busy` is the average number of busy instances.
    fn share(self, busy: f64) -> f64 {
        // An instance that has stopped working may have been busy a moment ago.
        if self.working == 0 { 0.0 } else { (busy / self.working as f64).min(1.0) }
    }

    /// Returns how often all working instances must execute for this many requests. If none works, all are counted.
    fn rounds(self, queued: f64) -> f64 {
        let instances = if self.working == 0 { self.instances } else { self.working };
        queued / (instances.max(1) * self.per_execution.max(1)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Capacity = Capacity { instances: 1, working: 1, per_execution: 1 };

    /// A meter whose upkeep comes twice a second, with a clock that is set by hand.
    struct Model {
        meter: LoadMeter,
        epoch: Instant,
        now: u64,
        queued: u64,
    }

    impl Model {
        fn new() -> Self {
            let model =
                Self { meter: LoadMeter::default(), epoch: Instant::now(), now: 0, queued: 0 };
            model.meter.sample(model.epoch, 0);
            model
        }

        fn at(&self, ms: u64) -> Instant {
            self.epoch + Duration::from_millis(ms)
        }

        fn go_on(&mut self, ms: u64) {
            for now in self.now + 1..=self.now + ms {
                self.now = now;
                if now % 500 == 0 {
                    self.meter.sample(self.at(now), self.queued);
                }
            }
        }

        fn load(&self, capacity: Capacity) -> f64 {
            let load = self.meter.load(self.at(self.now), self.queued, capacity);
            (load * 1000.0).round() / 1000.0
        }
    }

    #[test]
    fn half_a_second_of_work_per_second_is_a_load_of_one_half() {
        let mut model = Model::new();
        let busy = model.meter.add_instance(model.epoch);
        for _ in 0..40 {
            busy.begin(model.at(model.now));
            model.go_on(50);
            busy.end(model.at(model.now));
            model.go_on(50);
        }
        assert_eq!(model.load(ONE), 0.5);
        model.go_on(1500);
        assert_eq!(model.load(ONE), 0.0);
    }

    #[test]
    fn a_running_execution_counts() {
        let mut model = Model::new();
        let busy = model.meter.add_instance(model.epoch);
        model.go_on(2000);
        busy.begin(model.at(model.now));
        model.go_on(500);
        assert_eq!(model.load(ONE), 0.5);
        model.go_on(9000);
        assert_eq!(model.load(ONE), 1.0);
        let _idle = model.meter.add_instance(model.at(model.now));
        assert_eq!(model.load(Capacity { instances: 2, working: 2, ..ONE }), 0.5);
    }

    #[test]
    fn queued_requests_add_their_rounds_to_the_load() {
        let mut model = Model::new();
        let busy = model.meter.add_instance(model.epoch);
        busy.begin(model.epoch);
        model.queued = 6;
        model.go_on(3000);
        assert_eq!(model.load(ONE), 7.0);
        assert_eq!(model.load(Capacity { per_execution: 8, ..ONE }), 1.75);
        model.queued = 0;
        // Six waited in the first half of the window; then, within half a second, none did.
        model.go_on(1000);
        assert_eq!(model.load(ONE), 2.5);
        model.go_on(500);
        assert_eq!(model.load(ONE), 1.0);
    }

    #[test]
    fn broken_instances_count_neither_as_busy_nor_as_capacity() {
        let mut model = Model::new();
        let busy = model.meter.add_instance(model.epoch);
        busy.begin(model.epoch);
        model.queued = 4;
        model.go_on(3000);
        assert_eq!(model.load(Capacity { instances: 2, working: 1, ..ONE }), 5.0);
        assert_eq!(model.load(Capacity { instances: 2, working: 0, ..ONE }), 2.0);
        assert_eq!(model.load(Capacity { instances: 0, working: 0, ..ONE }), 4.0);
    }

    #[test]
    fn removing_an_instance_does_not_lower_past_load() {
        let mut model = Model::new();
        let (busy, stays) =
            (model.meter.add_instance(model.epoch), model.meter.add_instance(model.epoch));
        busy.begin(model.epoch);
        stays.begin(model.epoch);
        model.go_on(2500);
        busy.end(model.at(model.now));
        drop(busy);
        model.go_on(500);
        assert_eq!(model.load(ONE), 1.0);
        model.go_on(3000);
        assert_eq!(model.load(ONE), 1.0);
        assert_eq!(model.meter.0.lock_unpoisoned().instances.len(), 1);
    }

    #[test]
    fn reading_the_load_changes_nothing_and_samples_are_bounded() {
        let mut model = Model::new();
        let busy = model.meter.add_instance(model.epoch);
        busy.begin(model.epoch);
        model.go_on(700);
        busy.end(model.at(model.now));
        model.go_on(300);
        let loads: Vec<f64> = (0..5).map(|_| model.load(ONE)).collect();
        assert_eq!(loads, [0.7; 5]);
        for _ in 0..10 * MAX_SAMPLES {
            model.meter.sample(model.at(model.now), 0);
        }
        assert!(model.meter.0.lock_unpoisoned().samples.len() <= MAX_SAMPLES);
    }

    #[test]
    fn a_new_model_has_the_load_of_its_queue() {
        let meter = LoadMeter::default();
        assert_eq!(meter.load(Instant::now(), 3, ONE), 3.0);
    }
}
