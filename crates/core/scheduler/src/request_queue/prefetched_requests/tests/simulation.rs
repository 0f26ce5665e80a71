//! Properties of whole runs of instances that are handed requests ahead, on a clock that jumps from event to event.

use std::sync::atomic::{AtomicBool, Ordering};

use galatea_test_support::interleavings;
use proptest::prelude::*;
use shuttle::sync::Mutex;

use super::super::*;
use crate::request_queue::{
    Next, Work,
    tests::{Numbered, Queue, direct},
};

/// What a run looks like. Times are in units of their own.
#[derive(Clone, Debug)]
struct Script {
    instances: usize,
    depth: usize,
    /// How long a thread takes to notice a reply.
    lag: u64,
    requests: Vec<Request>,
}

#[derive(Clone, Debug)]
struct Request {
    /// After the one before it.
    after: u64,
    /// How long that takes.
    execution: u64,
    /// Nobody waits for it any more, so long after it came.
    abandoned_after: Option<u64>,
    /// The instance that has executed it executes nothing of what waits in it.
    stops: bool,
}

fn scripts() -> impl Strategy<Value = Script> {
    let request = (0u64..4, 0u64..8, 0u8..20, 0u64..12).prop_map(|(after, short, luck, later)| {
        let execution = if luck == 0 { 200 } else { short };
        let abandoned_after = (luck == 1).then_some(later);
        Request { after: after / 2, execution, abandoned_after, stops: luck == 2 }
    });
    (1usize..4, 1usize..9, 0u64..3, proptest::collection::vec(request, 1..80))
        .prop_map(|(instances, depth, lag, requests)| Script { instances, depth, lag, requests })
}

/// A worker that reads its next message the moment it has answered one.
#[derive(Default)]
struct Worker(Mutex<Reading>);

#[derive(Default)]
struct Reading {
    /// Numbers of batches, with the arrivals of their requests.
    unread: VecDeque<(usize, usize)>,
    /// Until then.
    executes: Option<(usize, u64)>,
}

impl WaitingBatches for Worker {
    fn take_first_back(&self, from: usize) -> ReturnedRequests {
        let first = self.0.lock().expect("no panic").unread.pop_front();
        first.map_or(ReturnedRequests::Nothing, |(number, _)| {
            assert!(number >= from, "a worker reads at once");
            ReturnedRequests::Batch(number)
        })
    }
}

#[derive(Default)]
struct Instance {
    worker: Arc<Worker>,
    /// What its thread waits for.
    current: Option<usize>,
    sent: usize,
    /// When its thread notices which reply.
    replies: VecDeque<(u64, usize)>,
}

struct Simulation {
    script: Script,
    queue: Queue,
    now: u64,
    instances: Vec<Instance>,
    /// Of each request, by its arrival.
    abandoned: Vec<Arc<AtomicBool>>,
    /// Arrivals, in the order in which workers began with them.
    begun: Vec<usize>,
    dropped: Vec<usize>,
    complete: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives,
    Abandoned(usize),
    Executed(usize),
    Noticed(usize),
}

impl Simulation {
    fn run(script: Script) -> Self {
        let queue = direct(script.instances, 0);
        (0..script.instances).for_each(|index| queue.instance_started(index));
        let instances = std::iter::repeat_with(Instance::default).take(script.instances).collect();
        let mut run = Self {
            script,
            queue,
            now: 0,
            instances,
            abandoned: Vec::new(),
            begun: Vec::new(),
            dropped: Vec::new(),
            complete: Vec::new(),
        };
        while let Some((at, event)) = run.next_event() {
            run.now = at;
            run.happen(event);
            run.serve_free_instances();
        }
        run
    }

    fn arrival_time(&self, request: usize) -> u64 {
        self.script.requests.iter().take(request + 1).map(|request| request.after).sum()
    }

    fn next_event(&self) -> Option<(u64, Event)> {
        let next = self.abandoned.len();
        let arrival =
            self.script.requests.get(next).map(|_| (self.arrival_time(next), Event::Arrives));
        let abandoned = (0..next).filter_map(|n| {
            let after = self.script.requests[n].abandoned_after?;
            let is_news = !self.abandoned[n].load(Ordering::Relaxed);
            is_news.then(|| (self.arrival_time(n) + after, Event::Abandoned(n)))
        });
        let instances = self.instances.iter().enumerate().flat_map(|(index, instance)| {
            let executes = instance.worker.0.lock().expect("no panic").executes;
            let executed = executes.map(|(_, until)| (until, Event::Executed(index)));
            let noticed = instance.replies.front().map(|&(at, _)| (at, Event::Noticed(index)));
            executed.into_iter().chain(noticed)
        });
        arrival.into_iter().chain(abandoned).chain(instances).min()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives => {
                let request = Numbered::new();
                self.abandoned.push(request.is_abandoned.clone());
                self.queue.push(request).expect("accepted");
            }
            Event::Abandoned(request) => {
                self.abandoned[request].store(true, Ordering::Relaxed);
                let dropped = self.queue.take_abandoned();
                self.queue.finish(dropped.len());
                self.dropped.extend(dropped.iter().map(|(request, _)| request.arrival as usize));
            }
            Event::Executed(index) => {
                let instance = &mut self.instances[index];
                let executed = instance.worker.0.lock().expect("no panic").executes.take();
                let (request, _) = executed.expect("it executes one");
                instance.replies.push_back((self.now + self.script.lag, request));
                self.read_next(index);
            }
            Event::Noticed(index) => self.go_on(index),
        }
    }

    /// The worker reads its next message, if it executes nothing.
    fn read_next(&mut self, index: usize) {
        let mut reading = self.instances[index].worker.0.lock().expect("no panic");
        if reading.executes.is_none()
            && let Some((_, request)) = reading.unread.pop_front()
        {
            reading.executes = Some((request, self.now + self.script.requests[request].execution));
            drop(reading);
            self.begun.push(request);
        }
    }

    fn send(&mut self, index: usize, number: usize, request: usize) {
        let worker = self.instances[index].worker.clone();
        worker.0.lock().expect("no panic").unread.push_back((number, request));
        self.read_next(index);
    }

    /// What an instance's thread does with a reply.
    fn go_on(&mut self, index: usize) {
        let instance = &mut self.instances[index];
        let (_, reply) = instance.replies.pop_front().expect("it is noticed");
        assert_eq!(instance.current, Some(reply), "the reply it waits for");
        self.complete.push(reply);
        let room = (!self.script.requests[reply].stops).then(|| self.room(index));
        let Next { begun, ahead } = self.queue.next(index, 1, room);
        self.instances[index].current = begun.map(|(_, request)| request.arrival as usize);
        self.hand_over(index, ahead);
    }

    fn room(&self, index: usize) -> usize {
        let unread = self.instances[index].worker.0.lock().expect("no panic").unread.len();
        self.script.depth.saturating_sub(unread)
    }

    fn hand_over(&mut self, index: usize, ahead: Vec<Numbered>) {
        for request in ahead {
            let instance = &mut self.instances[index];
            instance.sent += 1;
            let (number, waiting) = (instance.sent, instance.worker.clone());
            self.send(index, number, request.arrival as usize);
            self.queue.handed_over(index, PrefetchedRequest { request, number, waiting });
        }
    }

    /// Whoever is free pulls while any request waits, wherever it does. The pull must not sleep: nobody would wake it.
    fn serve_free_instances(&mut self) {
        while let Some(index) = self.instances.iter().position(|i| i.current.is_none())
            && self.begun.len() + self.dropped.len() < self.abandoned.len()
        {
            match self.queue.pull(index, 0, || ()) {
                Work::Batch(requests) => {
                    let request = requests[0].arrival as usize;
                    self.instances[index].current = Some(request);
                    self.send(index, 0, request);
                    let ahead = self.queue.next_ahead(index, 0, self.room(index));
                    self.hand_over(index, ahead);
                }
                Work::Dropped(dropped) => {
                    self.queue.finish(dropped.len());
                    self.dropped.extend(dropped.iter().map(|(r, _)| r.arrival as usize));
                }
                _ => panic!("a request waits"),
            }
        }
    }
}

/// Runs the simulation where the queue's locks are those of the model checker.
fn simulated(script: &Script, check: impl Fn(&Simulation) + Send + Sync + 'static) {
    let script = script.clone();
    interleavings::check_random(move || check(&Simulation::run(script.clone())), 1);
}

proptest! {
    /// No instance is free while a request waits, or the run would not end.
    #[test]
    fn every_request_is_executed_or_dropped_once(script in scripts()) {
        simulated(&script, |run| {
            let mut all: Vec<usize> = run.begun.iter().chain(&run.dropped).copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..run.script.requests.len()).collect::<Vec<_>>());
            assert!(run.dropped.iter().all(|&n| run.script.requests[n].abandoned_after.is_some()));
            assert_eq!(run.begun.len(), run.complete.len());
            assert_eq!(run.queue.in_flight(), 0);
        });
    }

    /// One request takes as long as all others together, at any position of the run.
    #[test]
    fn no_request_is_overtaken_without_bound(mut script in scripts(), long in any::<prop::sample::Index>()) {
        for request in &mut script.requests {
            *request = Request { abandoned_after: None, stops: false, execution: request.execution % 8, ..*request };
        }
        long.get_mut(&mut script.requests).execution = 1000;
        simulated(&script, |run| {
            let Script { instances, depth, .. } = run.script;
            let limit = instances * (3 * depth + 6);
            for (place, request) in run.begun.iter().enumerate() {
                let overtaking = run.begun[..place].iter().filter(|&other| other > request).count();
                assert!(overtaking <= limit, "{request} is overtaken by {overtaking}: {:?}", run.begun);
            }
        });
    }

    #[test]
    fn a_single_instance_executes_in_order_of_arrival(mut script in scripts()) {
        script.instances = 1;
        simulated(&script, |run| assert!(run.begun.is_sorted(), "{:?}", run.begun));
    }
}
