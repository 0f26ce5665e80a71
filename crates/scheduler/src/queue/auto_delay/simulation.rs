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
    fake::{Fake, MS, fake},
};

const US: Duration = Duration::from_micros(1);

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
    /// Sizes of the batches that were taken, and how long the oldest request of each had waited.
    batches: Vec<(usize, Duration)>,
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
        };
        run.change_load(load);
        run
    }

    /// Callers that were there go, others come.
    fn change_load(&mut self, load: Load) {
        self.load = load;
        self.events.retain(|Reverse((_, event))| *event != Event::Asks);
        let starts = match load {
            Load::Callers(count, _) => count,
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
            if let Load::Callers(count, _) = self.load
                && self.in_flight() < count
            {
                self.ask_again();
            }
        }
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
        self.batches.push((taken.len(), self.now - oldest));
        let end = self.now + self.model.execution(taken.len()).mul_f64(0.95 + 0.1 * self.chance());
        self.events.push(Reverse((end, Event::Ends(instance))));
        self.busy[instance] = Some(taken);
    }
}

/// After a second, in which the delay is learned.
fn outcome(model: Model, delay: Delay, load: Load) -> Outcome {
    let mut run = Run::new(model, delay, load, 7);
    run.run_for(MS * 1000);
    run.run_for(MS * 20_000)
}

const SWEEP: [u32; 6] = [0, 500, 1000, 2000, 5000, 10_000];

const MODEL: Model = Model {
    instances: 2,
    max_batch: 8,
    fixed: Duration::from_millis(2),
    per_item: Duration::from_micros(500),
};

#[test]
#[ignore]
fn table() {
    for load in [
        Load::Callers(1, US * 100),
        Load::Callers(2, US * 100),
        Load::Callers(4, US * 100),
        Load::Callers(8, US * 100),
        Load::Callers(12, US * 100),
        Load::Callers(16, US * 100),
        Load::Callers(16, US * 1000),
        Load::Callers(16, US * 10000),
        Load::Callers(24, US * 100),
        Load::Callers(64, US * 100),
        Load::Rate(10.0),
        Load::Rate(300.0),
        Load::Rate(1000.0),
        Load::Rate(2000.0),
    ] {
        for instances in [1, 2] {
            let model = Model { instances, ..MODEL };
            let delays = SWEEP.map(|us| Delay::Fixed(US * us)).into_iter().chain([Delay::Auto]);
            let figures: Vec<_> = delays
                .map(|delay| {
                    let o = outcome(model, delay, load);
                    format!(
                        "{:.0}/{:.1}/{:.1}",
                        o.per_second,
                        o.mean.as_secs_f64() * 1e3,
                        o.p99.as_secs_f64() * 1e3
                    )
                })
                .collect();
            println!("{load:?} x{instances}: {}", figures.join("  "));
        }
    }
}

#[test]
#[ignore]
fn trace() {
    for (n, instances) in [(8, 1), (16, 2), (12, 1)] {
        let model = Model { instances, ..MODEL };
        let mut run = Run::new(model, Delay::Auto, Load::Callers(n, US * 100), 7);
        run.run_for(MS * 1000);
        run.batches.clear();
        let begin = run.now;
        let o = run.run_for(MS * 2000);
        println!("{n} x{instances}: {o:?} {begin:?}");
        println!(
            "{:?}",
            run.batches
                .iter()
                .map(|(size, waited)| format!("{size}:{}", waited.as_micros()))
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
}

proptest! {
    #[test]
    fn nothing(x in 0..1) { prop_assert!(x == 0); }
}
