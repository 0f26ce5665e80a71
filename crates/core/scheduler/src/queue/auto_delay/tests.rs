//! Whole runs of a model beside fixed delays, on a clock that jumps from event to event.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use galatea_backend::testing::model_config;
use proptest::prelude::*;

use crate::queue::{
    Backlog, Decision, GrowingBatch,
    tests::fake::{Fake, MS, fake},
};

const US: Duration = Duration::from_micros(1);

/// The longest that is learned where none is given.
const BOUND: Duration = Duration::from_millis(10);

/// How long batches wait.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Delay {
    Fixed(Duration),
    Auto,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// So many callers ask again after that time, or up to twice as late, when they have their answer.
    Callers(usize, Duration),
    /// The same, but each eighth time after three more milliseconds.
    LateCallers(usize, Duration),
    /// Requests come at random, so many a second.
    Rate(f64),
}

#[derive(Clone, Copy, Debug)]
struct Model {
    instances: usize,
    max_batch: u32,
    /// Of an execution, and of each item in it.
    fixed: Duration,
    per_item: Duration,
}

impl Model {
    fn execution(&self, items: usize) -> Duration {
        self.fixed + self.per_item * u32::try_from(items).expect("few")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Asks,
    /// The batch of this instance is executed.
    Ends(usize),
    /// The leader with this number has waited.
    Waited(u64),
}

struct Run {
    model: Model,
    load: Load,
    backlog: Backlog<Fake>,
    events: BinaryHeap<Reverse<(Instant, Event)>>,
    now: Instant,
    busy: Vec<Option<Vec<Fake>>>,
    leader: Option<(u64, GrowingBatch)>,
    leaders: u64,
    random: u64,
    latencies: Vec<Duration>,
    /// Sizes of the batches that were taken.
    batches: Vec<usize>,
    /// How long each of them had waited although an instance was free.
    waits: Vec<Duration>,
    /// When each instance became free.
    free_since: Vec<Instant>,
}

/// What came of a run.
#[derive(Debug)]
struct Outcome {
    per_second: f64,
    mean: Duration,
    p99: Duration,
}

impl Run {
    fn new(model: Model, delay: Delay, load: Load, seed: u64) -> Self {
        let Model { instances, max_batch, .. } = model;
        let delay = match delay {
            Delay::Fixed(delay) => {
                format!(
                    "dynamic_batching {{ max_queue_delay_microseconds: {} }}",
                    delay.as_micros()
                )
            }
            Delay::Auto => "dynamic_batching {}
                parameters { key: 'batch_delay' value { string_value: 'auto' } }"
                .to_owned(),
        };
        let config = format!("name: 'm' backend: 'm' max_batch_size: {max_batch} {delay}");
        let mut run = Self {
            model,
            load,
            backlog: Backlog::from_config(&model_config(&config), 0),
            events: BinaryHeap::new(),
            now: Instant::now(),
            busy: (0..instances).map(|_| None).collect(),
            leader: None,
            leaders: 0,
            random: seed | 1,
            latencies: Vec::new(),
            batches: Vec::new(),
            waits: Vec::new(),
            free_since: vec![Instant::now(); instances],
        };
        run.change_load(load);
        run
    }

    /// Callers that were there go, others come.
    fn change_load(&mut self, load: Load) {
        self.load = load;
        self.events.retain(|Reverse((_, event))| *event != Event::Asks);
        let starts = match load {
            Load::Callers(count, _) | Load::LateCallers(count, _) => count,
            Load::Rate(_) => 1,
        };
        (0..starts).for_each(|_| self.ask_again());
    }

    /// 0 to 1.
    fn chance(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 40) as f64 / (1u64 << 24) as f64
    }

    fn ask_again(&mut self) {
        let chance = self.chance();
        let pause = match self.load {
            Load::Callers(_, think) => think.mul_f64(1.0 + chance),
            Load::LateCallers(_, think) => {
                let late = if self.chance() < 0.125 { MS * 3 } else { Duration::ZERO };
                think.mul_f64(1.0 + chance) + late
            }
            Load::Rate(rate) => Duration::from_secs_f64(-(1.0 - chance).ln() / rate),
        };
        self.events.push(Reverse((self.now + pause, Event::Asks)));
    }

    fn run_for(&mut self, time: Duration) -> Outcome {
        let begin = self.now;
        self.latencies.clear();
        while let Some(&Reverse((at, event))) = self.events.peek() {
            if at > begin + time {
                break;
            }
            self.events.pop();
            self.now = self.now.max(at);
            match event {
                Event::Asks => self.asks(),
                Event::Ends(instance) => self.ends(instance),
                Event::Waited(number) if self.leader.is_some_and(|(n, _)| n == number) => {
                    self.leader = None;
                    self.pull();
                }
                Event::Waited(_) => {}
            }
        }
        self.now = begin + time;
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let mean =
            self.latencies.iter().sum::<Duration>() / u32::try_from(count.max(1)).expect("few");
        let p99 = self.latencies.get(count * 99 / 100).copied().unwrap_or_default();
        Outcome { per_second: count as f64 / time.as_secs_f64(), mean, p99 }
    }

    fn asks(&mut self) {
        if let Load::Rate(_) = self.load {
            self.ask_again();
        }
        self.backlog.push(fake(0, 1, self.now)).expect("no limit");
        let items = self.backlog.item_count();
        if self.leader.is_none_or(|(_, batch)| batch.is_ended_by(items, None, true)) {
            self.leader = None;
            self.pull();
        }
    }

    fn ends(&mut self, instance: usize) {
        for request in self.busy[instance].take().expect("busy") {
            self.latencies.push(self.now - request.queued_at);
            if let Load::Callers(count, _) | Load::LateCallers(count, _) = self.load
                && self.in_flight() < count
            {
                self.ask_again();
            }
        }
        self.free_since[instance] = self.now;
        self.backlog.ended(instance, self.now);
        self.pull();
    }

    /// Requests and callers that think about one.
    fn in_flight(&self) -> usize {
        let thinking =
            self.events.iter().filter(|Reverse((_, event))| *event == Event::Asks).count();
        let executing: usize = self.busy.iter().flatten().map(Vec::len).sum();
        thinking + executing + self.backlog.len()
    }

    /// Free instances pull until nothing is left for them.
    fn pull(&mut self) {
        while let Some(instance) = self.busy.iter().position(Option::is_none) {
            let free = self.busy.iter().filter(|batch| batch.is_none()).count();
            match self.backlog.decide_beside(free - 1, self.now, false) {
                Decision::Empty => return,
                Decision::Wait(_) if self.leader.is_some() => return,
                Decision::Wait(batch) => {
                    assert!(batch.until > self.now, "a wait that is over");
                    self.leaders += 1;
                    self.leader = Some((self.leaders, batch));
                    self.events.push(Reverse((batch.until, Event::Waited(self.leaders))));
                    return;
                }
                Decision::Take(count) => self.execute(instance, count),
            }
        }
    }

    fn execute(&mut self, instance: usize, count: usize) {
        let taken = self.backlog.take(count);
        self.backlog.begins(instance, &taken, self.now);
        let oldest = taken.iter().map(|request| request.queued_at).min().expect("one");
        self.batches.push(taken.len());
        let free_since = self.free_since[instance];
        self.waits.push(self.now.saturating_duration_since(oldest.max(free_since)));
        let end = self.now + self.model.execution(taken.len()).mul_f64(0.95 + 0.1 * self.chance());
        self.events.push(Reverse((end, Event::Ends(instance))));
        self.busy[instance] = Some(taken);
    }
}

/// After a second, in which the delay is learned.
fn outcome(model: Model, delay: Delay, load: Load) -> Outcome {
    let mut run = Run::new(model, delay, load, 7);
    run.run_for(MS * 500);
    run.run_for(MS * 2000)
}

const MODEL: Model = Model {
    instances: 2,
    max_batch: 8,
    fixed: MS.saturating_mul(2),
    per_item: US.saturating_mul(500),
};

/// The best of those that one would try.
fn best_fixed(model: Model, load: Load) -> Outcome {
    let delays = [0, 500, 1000, 2000, 5000, 10_000].map(|us| Delay::Fixed(US * us));
    let outcomes = delays.map(|delay| outcome(model, delay, load)).into_iter();
    outcomes.max_by(|a, b| a.per_second.total_cmp(&b.per_second)).expect("some")
}

#[test]
fn repeating_callers_get_the_throughput_of_the_best_fixed_delay() {
    for (callers, think) in
        [(2, 100), (4, 100), (8, 30), (12, 100), (16, 100), (16, 1000), (24, 300), (64, 100)]
    {
        for instances in [1, 2, 3] {
            let (model, load) = (Model { instances, ..MODEL }, Load::Callers(callers, US * think));
            let (best, auto) = (best_fixed(model, load), outcome(model, Delay::Auto, load));
            let told = format!(
                "{callers} callers, {think} us, {instances} instances: {auto:?}, best {best:?}"
            );
            assert!(auto.per_second >= 0.97 * best.per_second, "{told}");
            assert!(
                auto.p99 <= best.p99.mul_f64(1.1) || auto.per_second >= 1.05 * best.per_second,
                "{told}"
            );
        }
    }
}

/// One caller of eight is late, as on a machine with busy processors.
#[test]
fn occasionally_late_callers_are_waited_for() {
    for instances in [1, 2] {
        let model = Model { instances, fixed: MS * 3, per_item: MS * 12, ..MODEL };
        let load = Load::LateCallers(16, US * 100);
        let (best, auto) = (best_fixed(model, load), outcome(model, Delay::Auto, load));
        assert!(auto.per_second >= 0.97 * best.per_second, "{auto:?}, best {best:?}");
    }
}

#[test]
fn random_arrivals_are_hardly_delayed() {
    for rate in [10.0, 100.0, 300.0, 1000.0, 2000.0] {
        let load = Load::Rate(rate);
        let none = outcome(MODEL, Delay::Fixed(Duration::ZERO), load);
        let auto = outcome(MODEL, Delay::Auto, load);
        let told = format!("{rate} a second: {auto:?}, without a delay {none:?}");
        assert!(auto.mean <= none.mean.mul_f64(1.15) + US * 100, "{told}");
        assert!(auto.p99 <= none.p99.mul_f64(1.25) + US * 100, "{told}");
    }
}

#[test]
fn a_model_without_gain_from_batching_has_no_delay() {
    let model = Model { fixed: Duration::ZERO, per_item: MS, ..MODEL };
    let mut run = Run::new(model, Delay::Auto, Load::Callers(6, US * 100), 3);
    run.run_for(MS * 2000);
    run.waits.clear();
    run.run_for(MS * 2000);
    let waited: Duration = run.waits.iter().sum();
    assert!(waited < MS * 40, "{waited:?} of two seconds");
}

fn models() -> impl Strategy<Value = Model> {
    (1usize..=3, 1u32..=16, 0u32..5000, 0u32..2000).prop_map(
        |(instances, max_batch, fixed, per_item)| Model {
            instances,
            max_batch,
            fixed: US * fixed,
            per_item: US * (per_item + 1),
        },
    )
}

fn loads() -> impl Strategy<Value = Load> {
    prop_oneof![
        (1usize..40, 0u32..5000)
            .prop_map(|(callers, think)| Load::Callers(callers, US * (think + 1))),
        (1.0f64..3000.0).prop_map(Load::Rate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_request_waits_longer_than_the_bound_while_an_instance_is_free(model in models(), before in loads(), after in loads(), seed: u64) {
        let mut run = Run::new(model, Delay::Auto, before, seed);
        run.run_for(MS * 500);
        run.change_load(after);
        run.run_for(MS * 500);
        prop_assert!(run.waits.iter().all(|&wait| wait <= BOUND), "{:?}", run.waits.iter().max());
        if let Load::Callers(callers, _) = after {
            prop_assert_eq!(run.in_flight(), callers.max(run.in_flight()), "nobody is lost");
        }
    }

    #[test]
    fn a_lone_caller_has_no_delay(model in models(), think in 0u32..5000, seed: u64) {
        let mut run = Run::new(model, Delay::Auto, Load::Callers(1, US * (think + 1)), seed);
        run.run_for(MS * 500);
        prop_assert!(!run.batches.is_empty());
        prop_assert!(run.waits.iter().all(Duration::is_zero));
    }

    #[test]
    fn the_last_remaining_caller_soon_has_no_delay(model in models(), before in loads(), think in 0u32..5000, seed: u64) {
        let mut run = Run::new(model, Delay::Auto, before, seed);
        run.run_for(MS * 500);
        run.change_load(Load::Callers(1, US * (think + 1)));
        // What waits is executed first.
        while run.in_flight() > 1 {
            run.run_for(MS * 10);
        }
        run.waits.clear();
        run.run_for(MS * 3000);
        let in_vain = run.waits.iter().filter(|wait| !wait.is_zero()).count();
        prop_assert!(in_vain <= 8, "{} times", in_vain);
    }

    #[test]
    fn additional_callers_are_noticed(model in models(), seed: u64) {
        let model = Model { instances: 1, max_batch: 8, fixed: MS * 3 + model.fixed, ..model };
        let mut run = Run::new(model, Delay::Auto, Load::Callers(1, US * 100), seed);
        run.run_for(MS * 500);
        run.change_load(Load::Callers(6, US * 100));
        run.run_for(MS * 1000);
        run.batches.clear();
        run.run_for(MS * 1000);
        let full = run.batches.iter().filter(|&&size| size == 6).count();
        prop_assert!(full * 10 >= run.batches.len() * 9, "{:?}", run.batches);
    }
}

/// Four callers of six are answered together, when the other two have waited longer than the bound.
#[test]
fn an_execution_longer_than_the_bound_does_not_split_the_callers() {
    let model = Model { instances: 1, max_batch: 8, fixed: US * 7253, per_item: US * 1990 };
    let mut run = Run::new(model, Delay::Auto, Load::Callers(1, US * 100), 1994082024079127354);
    run.run_for(MS * 500);
    run.change_load(Load::Callers(6, US * 100));
    run.run_for(MS * 1000);
    run.batches.clear();
    run.run_for(MS * 1000);
    assert!(run.batches.iter().all(|&size| size == 6), "{:?}", run.batches);
}
