//! A server with instances that batch, in simulated time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::super::policy::AdmissionPolicy;
use crate::model_shape::ModelShape;

/// The time of one execution.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    Constant(f64),
    Exponential(f64),
    /// The short time, or the long one for one in ten.
    Bimodal(f64, f64),
    /// A fixed part, and a part for each item.
    Batch(f64, f64),
}

/// The flow of requests to a model. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub shape: ModelShape,
    pub service: Service,
    pub per_second: f64,
    pub seconds: f64,
    /// Answers of the first seconds are not counted.
    pub settles: f64,
    /// False to accept everything.
    pub has_admission: bool,
    /// The time that clients wait, if they say so.
    pub budget: Option<f64>,
}

/// The figures of a run.
pub struct Outcome {
    /// Answers per second, of those within their budget.
    pub goodput: f64,
    /// The answers that came too late.
    pub late: usize,
    pub p99: f64,
    pub refused: usize,
    pub limit: u32,
}

/// A generator of numbers between 0 and 1: xorshift.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

impl Service {
    fn time(self, items: usize, numbers: &mut Numbers) -> f64 {
        match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => numbers.exponential(mean),
            Self::Bimodal(short, long) => {
                if numbers.next() < 0.1 {
                    long
                } else {
                    short
                }
            }
            Self::Batch(fixed, each) => fixed + each * items as f64,
        }
    }
}

struct Simulation {
    load: Load,
    policy: AdmissionPolicy,
    start: Instant,
    numbers: Numbers,
    waiting: VecDeque<f64>,
    /// The end of the execution of each instance, and the arrivals of its requests.
    executing: Vec<Option<(f64, Vec<f64>)>>,
    answers: Vec<f64>,
    late: usize,
    refused: usize,
}

impl Load {
    pub fn run(self, seed: u64) -> Outcome {
        let start = Instant::now();
        let mut simulation = Simulation {
            load: self,
            policy: AdmissionPolicy::new(self.shape, start),
            start,
            numbers: Numbers(seed),
            waiting: VecDeque::new(),
            executing: (0..self.shape.instances).map(|_| None).collect(),
            answers: Vec::new(),
            late: 0,
            refused: 0,
        };
        simulation.run();
        simulation.outcome()
    }
}

impl Simulation {
    fn run(&mut self) {
        let mut arrival = 0.0;
        while arrival < self.load.seconds {
            let ends = self.executing.iter().enumerate();
            let ends = ends.filter_map(|(i, e)| e.as_ref().map(|(end, _)| (*end, i)));
            match ends.min_by(|a, b| a.0.total_cmp(&b.0)) {
                Some((end, instance)) if end <= arrival => self.end(instance),
                _ => {
                    self.arrive(arrival);
                    arrival += self.numbers.exponential(1.0 / self.load.per_second);
                }
            }
        }
    }

    fn at(&self, seconds: f64) -> Instant {
        self.start + Duration::from_secs_f64(seconds)
    }

    fn arrive(&mut self, now: f64) {
        if self.load.has_admission {
            let at = self.at(now);
            let budget = self.load.budget.map(Duration::from_secs_f64);
            if self.policy.check(at, 1, budget).is_err() {
                self.refused += 1;
                return;
            }
            self.policy.take(at, 1);
        }
        self.waiting.push_back(now);
        if let Some(idle) = self.executing.iter().position(Option::is_none) {
            self.begin(idle, now);
        }
    }

    fn begin(&mut self, instance: usize, now: f64) {
        let items = self.waiting.len().min(self.load.shape.per_execution as usize);
        if items > 0 {
            let batch = self.waiting.drain(..items).collect();
            let time = self.load.service.time(items, &mut self.numbers);
            self.executing[instance] = Some((now + time, batch));
        }
    }

    fn end(&mut self, instance: usize) {
        let (now, batch) = self.executing[instance].take().expect("it executes");
        for arrival in batch {
            let after = now - arrival;
            if self.load.has_admission {
                let at = self.at(now);
                if self.policy.answered(at, 1, Duration::from_secs_f64(after)) {
                    self.policy.learn(at);
                }
            }
            if arrival < self.load.settles {
                continue;
            }
            match self.load.budget {
                Some(budget) if after > budget => self.late += 1,
                _ => self.answers.push(after),
            }
        }
        self.begin(instance, now);
    }

    fn outcome(mut self) -> Outcome {
        self.answers.sort_by(f64::total_cmp);
        let count = self.answers.len();
        Outcome {
            goodput: count as f64 / (self.load.seconds - self.load.settles),
            late: self.late,
            p99: self.answers.get(count * 99 / 100).copied().unwrap_or(f64::NAN),
            refused: self.refused,
            limit: self.policy.limit(),
        }
    }
}
