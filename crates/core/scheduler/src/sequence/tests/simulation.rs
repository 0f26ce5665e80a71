//! Properties of whole runs: random arrivals, ends, clients that go away, idle times, time-outs and instances that break, on
//! a clock that jumps.

use std::{
    cell::Cell,
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use galatea_types::{CorrelationId, Error};
use proptest::prelude::*;

use super::fake::{Done, Fake, MS, config, fake, sequences};
use crate::{
    queue::Decision,
    sequence::{SequenceRefusal, SequenceRequest, Sequences, Step, StepEnd},
};

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A request of this sequence; which flags it has depends on what the sequence has had.
    Arrive {
        sequence: u64,
        luck: u8,
        shape: u8,
        timeout: Option<u32>,
    },
    /// The client of a request goes away.
    Abandon(usize),
    /// All abandoned requests are looked for, as is done twice a second.
    Sweep,
    /// An instance looks for work, and executes it until it looks again.
    Pull(usize),
    Break(usize),
    Restart(usize),
    /// Memory is wanted for the states of another model.
    GiveWay,
    Pass(u32),
}

#[derive(Clone, Debug)]
struct Script {
    strategy: String,
    max_batch_size: u32,
    instances: usize,
    events: Vec<Event>,
}

const SEQUENCES: u64 = 6;

fn scripts() -> impl Strategy<Value = Script> {
    let event = prop_oneof![
        8 => (1..=SEQUENCES, 0u8..20, 0u8..8, proptest::option::weighted(0.2, 1u32..30)).prop_map(
            |(sequence, luck, shape, timeout)| Event::Arrive { sequence, luck, shape: shape / 7, timeout }
        ),
        6 => (0usize..3).prop_map(Event::Pull),
        1 => (0usize..100).prop_map(Event::Abandon),
        1 => Just(Event::Sweep),
        1 => (0usize..3).prop_map(Event::Break),
        2 => (0usize..3).prop_map(Event::Restart),
        1 => Just(Event::GiveWay),
        3 => (0u32..25).prop_map(Event::Pass),
    ];
    let strategy = prop_oneof![
        Just("direct {}".to_owned()),
        Just("direct { max_queue_delay_microseconds: 4000 minimum_slot_utilization: 0.7 }".to_owned()),
        (1u32..4).prop_map(|n| format!("oldest {{ max_candidate_sequences: {n} }}")),
        Just("oldest { max_candidate_sequences: 3 preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 3000 }".to_owned()),
    ];
    (strategy, 2u32..4, 1usize..4, any::<bool>(), proptest::collection::vec(event, 1..120)).prop_map(
        |(strategy, max_batch_size, instances, is_iterative, events)| Script {
            strategy: format!("max_sequence_idle_microseconds: 40000 iterative_sequence: {is_iterative} {strategy}"),
            max_batch_size,
            instances,
            events,
        },
    )
}

/// An instance, which breaks and is restarted.
#[derive(Default)]
struct Instance {
    is_broken: bool,
    executing: Vec<Step<Fake, Done>>,
}

/// A run of a sequence: from one start to the next.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Requests that were executed to their end.
    executed: Done,
    place: Option<(usize, u32)>,
}

struct Simulation {
    sequences: Sequences<Fake>,
    instances: Vec<Instance>,
    now: Instant,
    accepted: HashMap<usize, Rc<Cell<bool>>>,
    answered: HashMap<usize, &'static str>,
    /// The run of each request.
    run_of: HashMap<usize, usize>,
    runs: Vec<Run>,
    open: HashMap<u64, usize>,
    iterations: HashMap<usize, u32>,
    is_iterative: bool,
}

impl Simulation {
    fn new(script: &Script) -> Self {
        let now = Instant::now();
        let config = config(script.max_batch_size, &script.strategy);
        Self {
            sequences: sequences(&config, script.instances, (0, 0), now),
            instances: (0..script.instances).map(|_| Instance::default()).collect(),
            now,
            accepted: HashMap::new(),
            answered: HashMap::new(),
            run_of: HashMap::new(),
            runs: Vec::new(),
            open: HashMap::new(),
            iterations: HashMap::new(),
            is_iterative: script.strategy.contains("iterative_sequence: true"),
        }
    }

    fn play(&mut self, event: &Event, id: usize) {
        match event {
            Event::Arrive { sequence, luck, shape, timeout } => {
                self.arrive(id, *sequence, *luck, *shape, timeout.map(|t| MS * t));
            }
            Event::Abandon(n) => {
                let mut ids: Vec<_> = self.accepted.keys().copied().collect();
                ids.sort_unstable();
                if let Some(id) = ids.get(n % ids.len().max(1)) {
                    self.accepted[id].set(true);
                }
            }
            Event::Sweep => self.sequences.drop_abandoned(self.now),
            Event::Pull(instance) => self.pull(instance % self.instances.len(), false),
            Event::Break(instance) => self.break_down(instance % self.instances.len()),
            Event::Restart(instance) => self.restart(instance % self.instances.len()),
            Event::GiveWay => self.give_way(),
            Event::Pass(ms) => self.now += MS * *ms,
        }
        self.answer_dropped();
    }

    fn arrive(&mut self, id: usize, sequence: u64, luck: u8, shape: u8, timeout: Option<Duration>) {
        let is_known = self.open.contains_key(&sequence);
        // Mostly as a client should; sometimes a start too many or too few.
        let is_start = is_known == (luck == 0);
        let flags = match (is_start, luck % 5 == 1) {
            (true, true) => "se",
            (true, false) => "s",
            (false, true) => "e",
            (false, false) => "",
        };
        let request = Fake { shape, timeout, ..fake(id, sequence, flags, self.now) };
        let flag = request.is_abandoned.clone();
        match self.sequences.push(request, self.now) {
            Ok(_) => {
                self.accepted.insert(id, flag);
                if is_start {
                    self.runs.push(Run::default());
                    self.open.insert(sequence, self.runs.len() - 1);
                }
                let run = *self.open.get(&sequence).expect("it has begun");
                self.run_of.insert(id, run);
                if flags.contains('e') {
                    self.open.remove(&sequence);
                }
            }
            Err((
                _,
                SequenceRefusal::NotStarted | SequenceRefusal::Lost(_) | SequenceRefusal::GaveWay,
            )) => {
                assert!(!is_start, "a start is accepted");
                self.open.remove(&sequence);
            }
            Err((_, refusal)) => panic!("{refusal:?}"),
        }
    }

    fn pull(&mut self, instance: usize, is_closed: bool) {
        if self.instances[instance].is_broken {
            return;
        }
        let executed = std::mem::take(&mut self.instances[instance].executing);
        let ends: Vec<_> = executed.into_iter().map(|step| self.end(step)).collect();
        self.sequences.finish(instance, ends, self.now);
        if let Decision::Take(count) = self.sequences.decide(instance, self.now, is_closed) {
            let steps = self.sequences.take(instance, count, self.now);
            let steps: Vec<_> = steps.into_iter().flatten().collect();
            assert!(!steps.is_empty(), "what is taken is not empty");
            for step in &steps {
                self.check(instance, step, &steps);
            }
            self.instances[instance].executing = steps;
        }
    }

    /// A step is the next of its run, in the place of the run, with the state that the run left.
    fn check(&mut self, instance: usize, step: &Step<Fake, Done>, batch: &[Step<Fake, Done>]) {
        let id = step.request.id;
        assert!(!self.answered.contains_key(&id), "request {id} is executed once");
        let run = &mut self.runs[self.run_of[&id]];
        let place = (instance, step.ticket.slot);
        assert_eq!(*run.place.get_or_insert(place), place, "a sequence keeps its slot");
        assert_eq!(step.states, run.executed, "state of its own sequence");
        assert!(run.executed.last().is_none_or(|&last| last <= id), "in order");
        let same_slot = batch.iter().filter(|other| other.ticket.slot == step.ticket.slot).count();
        assert_eq!(same_slot, 1, "one request of a slot in a batch");
        let busy = self.instances.iter().flat_map(|i| &i.executing);
        let run = self.run_of[&id];
        assert!(
            busy.into_iter().all(|other| self.run_of[&other.request.id] != run),
            "one at a time"
        );
    }

    fn end(&mut self, step: Step<Fake, Done>) -> StepEnd<Fake, Done> {
        let id = step.request.id;
        let mut states = step.states;
        states.push(id);
        self.runs[self.run_of[&id]].executed.push(id);
        let iterations = self.iterations.entry(id).or_default();
        *iterations += 1;
        let goes_on = self.is_iterative && *iterations < id as u32 % 3;
        let again = goes_on.then(|| {
            let mut request = step.request;
            request.continue_sequence(self.now);
            request
        });
        if again.is_none() {
            self.answer(id, "executed");
        }
        StepEnd { ticket: step.ticket, states, again }
    }

    /// One gives way that keeps something and has nothing to do, if there is any: the one that has rested longest.
    fn give_way(&mut self) {
        let kept = self.sequences.bytes_at_rest(usize::MAX);
        let since = self.sequences.resting_since();
        let gone = self.sequences.give_way(self.now);
        assert_eq!((gone.is_some(), since.is_some()), (kept > 0, kept > 0));
        let Some((CorrelationId::Number(number), states)) = gone else { return };
        let run = self.open.get(&number).copied();
        let of_run = |id: &usize| run.is_none_or(|run| self.run_of[id] == run);
        assert!(states.iter().all(of_run), "the state of its own run");
        let waits = |(id, _): (&usize, _)| {
            run.is_some_and(|run| self.run_of[id] == run) && !self.answered.contains_key(id)
        };
        assert!(!self.accepted.iter().any(waits), "a request in hand keeps its state");
        assert_eq!(self.sequences.bytes_at_rest(usize::MAX), kept - states.len());
        assert!(
            self.sequences.resting_since().is_none_or(|next| Some(next) >= since),
            "oldest first"
        );
    }

    fn break_down(&mut self, instance: usize) {
        if std::mem::replace(&mut self.instances[instance].is_broken, true) {
            return;
        }
        self.sequences.instance_lost(instance, &Error::internal("it broke"), self.now);
        let executing = std::mem::take(&mut self.instances[instance].executing);
        executing.iter().for_each(|step| self.answer(step.request.id, "broke"));
    }

    fn restart(&mut self, instance: usize) {
        if std::mem::replace(&mut self.instances[instance].is_broken, false) {
            self.sequences.instance_works(instance, self.now);
        }
    }

    fn answer_dropped(&mut self) {
        for (request, _) in self.sequences.take_dropped() {
            self.answer(request.id, "dropped");
        }
    }

    fn answer(&mut self, id: usize, how: &'static str) {
        let before = self.answered.insert(id, how);
        assert_eq!(before, None, "request {id} is answered once");
    }

    /// No more requests come, and instances work: everything is answered.
    fn close(&mut self) {
        (0..self.instances.len()).for_each(|instance| self.restart(instance));
        for _ in 0..4 * (self.accepted.len() + 1) {
            (0..self.instances.len()).for_each(|instance| self.pull(instance, true));
            self.answer_dropped();
        }
        let mut lost: Vec<_> =
            self.accepted.keys().filter(|id| !self.answered.contains_key(id)).collect();
        lost.sort_unstable();
        assert!(lost.is_empty(), "without an answer: {lost:?}");
        assert_eq!(self.sequences.len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_request_is_answered_once_in_order_with_the_state_of_its_sequence(script in scripts()) {
        let mut simulation = Simulation::new(&script);
        for (id, event) in script.events.iter().enumerate() {
            simulation.play(event, id);
        }
        simulation.close();
    }
}
