//! Properties of the rate limiter over whole runs of several models, whose instances come, go and break.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    ledger::{MAX_CREDIT, MemberId, PermitLedger},
    supply::{Demand, Pool},
};

const POOLS: u8 = 3;
const QUEUES: u64 = 3;

/// One instance: what it asks for of each pool, and its priority.
#[derive(Clone, Debug)]
struct Instance {
    queue: u64,
    counts: Vec<u64>,
    priority: u32,
}

impl Instance {
    fn demand(&self) -> Demand {
        let pool = |number: usize| Pool { name: number.to_string().into(), device: Some(0) };
        let asked = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        asked.map(|(number, &count)| (pool(number), count)).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request for a queue.
    Arrival(u64),
    /// A request of a queue is cancelled or expires.
    Departure(u64),
    /// One of those that execute has ended.
    End(usize),
    /// An instance stops working, whatever it is at.
    Break(usize),
    /// It works again.
    Repair(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let queue = || 0..QUEUES;
    let event = prop_oneof![
        4 => queue().prop_map(Event::Arrival),
        1 => queue().prop_map(Event::Departure),
        4 => (0usize..8).prop_map(Event::End),
        1 => (0usize..8).prop_map(Event::Break),
        1 => (0usize..8).prop_map(Event::Repair),
    ];
    proptest::collection::vec(event, 1..200)
}

fn instances() -> impl Strategy<Value = Vec<Instance>> {
    let counts = proptest::collection::vec(0u64..4, POOLS as usize);
    let instance = (0..QUEUES, counts, 0u32..5);
    let instance =
        instance.prop_map(|(queue, counts, priority)| Instance { queue, counts, priority });
    proptest::collection::vec(instance, 1..8)
}

/// Threads that do as those of instances do.
struct World {
    ledger: PermitLedger,
    ids: Vec<MemberId>,
    has_instance: BTreeMap<MemberId, bool>,
    waiting: BTreeMap<u64, usize>,
    /// Those that were told that they may begin, and have not looked yet.
    woken: Vec<MemberId>,
    executed: BTreeMap<MemberId, u64>,
}

impl World {
    fn new(instances: &[Instance]) -> Self {
        let mut world = Self {
            ledger: PermitLedger::new(Vec::new()),
            ids: Vec::new(),
            has_instance: BTreeMap::new(),
            waiting: (0..QUEUES).map(|queue| (queue, 0)).collect(),
            woken: Vec::new(),
            executed: BTreeMap::new(),
        };
        for (index, instance) in instances.iter().enumerate() {
            let id = MemberId { queue: instance.queue, index };
            let granted = world.ledger.add(id, instance.demand(), instance.priority);
            assert_eq!(granted, Ok(Vec::new()), "nobody waits yet");
            world.ids.push(id);
            world.has_instance.insert(id, true);
        }
        let ids = world.ids.clone();
        ids.into_iter().for_each(|id| world.look(id));
        world
    }

    /// What a thread does that looks for work.
    fn look(&mut self, id: MemberId) {
        self.ledger.looks_for_work(id);
        loop {
            let waiting = self.waiting[&id.queue];
            if waiting == 0 {
                let granted = self.ledger.rest(id);
                return self.wake(granted);
            }
            let granted = self.ledger.claim(id, Some(waiting));
            if granted.may_begin {
                self.waiting.insert(id.queue, waiting - 1);
                *self.executed.entry(id).or_default() += 1;
                return;
            }
            if granted.others.is_empty() {
                return;
            }
            self.wake(granted.others);
        }
    }

    fn wake(&mut self, granted: Vec<MemberId>) {
        self.woken.extend(granted);
    }

    /// Lets all who were woken look.
    fn settle(&mut self) {
        while let Some(id) = self.woken.pop() {
            if self.has_instance[&id] {
                self.look(id);
            }
        }
    }

    fn executing(&self) -> Vec<MemberId> {
        let executes = |id: &&MemberId| self.ledger.is_executing(**id);
        self.ids.iter().filter(executes).copied().collect()
    }

    fn idle_of(&self, queue: u64) -> Option<MemberId> {
        let is_idle = |id: &&MemberId| {
            id.queue == queue && self.has_instance[id] && !self.ledger.is_executing(**id)
        };
        self.ids.iter().find(is_idle).copied()
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Arrival(queue) => {
                *self.waiting.entry(queue).or_default() += 1;
                // The queue wakes any of its threads that sleeps.
                if let Some(id) = self.idle_of(queue) {
                    self.look(id);
                }
            }
            Event::Departure(queue) => {
                let waiting = self.waiting[&queue];
                self.waiting.insert(queue, waiting.saturating_sub(1));
            }
            Event::End(number) => {
                let executing = self.executing();
                if !executing.is_empty() {
                    self.look(executing[number % executing.len()]);
                }
            }
            Event::Break(number) => {
                let id = self.ids[number % self.ids.len()];
                self.has_instance.insert(id, false);
                let granted = self.ledger.leave(id);
                self.wake(granted);
                // Another thread looks after what it left.
                if let Some(other) = self.idle_of(id.queue) {
                    self.look(other);
                }
            }
            Event::Repair(number) => {
                let id = self.ids[number % self.ids.len()];
                if !self.has_instance[&id] {
                    self.has_instance.insert(id, true);
                    self.look(id);
                }
            }
        }
    }

    fn assert_within_supply(&self) {
        for (taken, all) in self.ledger.balance() {
            assert!(taken <= all, "{taken} of {all} are held");
        }
    }

    /// Whether a queue with requests has an instance that works.
    fn has_work(&self) -> bool {
        let has_instance =
            |queue: u64| self.ids.iter().any(|id| id.queue == queue && self.has_instance[id]);
        self.waiting.iter().any(|(&queue, &waiting)| waiting > 0 && has_instance(queue))
    }
}

proptest! {
    /// What is held is never more than there is; as long as something waits that could be executed, something is
    /// executed; and at the end nothing is left, whatever broke on the way.
    #[test]
    fn permits_are_never_exceeded_lost_or_starved(instances in instances(), events in events()) {
        let mut world = World::new(&instances);
        for event in events {
            world.apply(event);
            world.settle();
            world.assert_within_supply();
            prop_assert!(!world.has_work() || !world.executing().is_empty(), "all wait for nothing");
        }
        let mut steps = 0;
        while let Some(&id) = world.executing().first() {
            world.look(id);
            world.settle();
            world.assert_within_supply();
            steps += 1;
            prop_assert!(steps < 10_000, "it never ends");
        }
        prop_assert!(!world.has_work(), "requests are left: {:?}", world.waiting);
        let ids = world.ids.clone();
        for id in ids {
            world.ledger.remove(id);
        }
        prop_assert_eq!(world.ledger.balance(), Vec::new());
    }
}

fn instance(queue: u64, count: u64, priority: u32) -> Instance {
    Instance { queue, counts: vec![count], priority }
}

/// How often each has executed after `rounds` executions, where requests always wait.
fn shares(instances: &[Instance], rounds: usize) -> Vec<u64> {
    let mut world = World::new(instances);
    world.waiting.values_mut().for_each(|waiting| *waiting = usize::MAX);
    run(&mut world, rounds);
    world.ids.iter().map(|id| world.executed.get(id).copied().unwrap_or(0)).collect()
}

fn run(world: &mut World, rounds: usize) {
    for id in world.ids.clone() {
        if !world.ledger.is_executing(id) {
            world.look(id);
        }
    }
    world.settle();
    for _ in 0..rounds {
        let id = world.executing()[0];
        world.look(id);
        world.settle();
    }
}

#[test]
fn executions_are_shared_by_priority() {
    let found = shares(&[instance(0, 4, 1), instance(1, 2, 2), instance(2, 4, 3)], 1100);
    let expected = [600, 300, 200];
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(found.abs_diff(expected) <= 2, "{found} of {expected}");
    }
}

#[test]
fn instances_of_one_model_are_shared_by_priority() {
    let found = shares(&[instance(0, 1, 1), instance(0, 1, 3)], 400);
    assert!(found[0].abs_diff(300) <= 2 && found[1].abs_diff(100) <= 2, "{found:?}");
}

/// Many instances ask for one copy, and one asks for all three.
#[test]
fn a_large_demand_is_not_passed_over() {
    let found =
        shares(&[instance(0, 1, 1), instance(0, 1, 1), instance(1, 1, 1), instance(2, 3, 1)], 400);
    assert!(found.iter().all(|found| found.abs_diff(100) <= 2), "{found:?}");
}

/// An instance without a contended resource executes beside the others.
#[test]
fn instances_without_demand_are_not_held_up() {
    let free = Instance { queue: 2, counts: vec![0, 1], priority: 1 };
    let mut world = World::new(&[instance(0, 1, 1), instance(1, 1, 1), free]);
    world.apply(Event::Arrival(0));
    world.apply(Event::Arrival(1));
    for _ in 0..3 {
        world.apply(Event::Arrival(2));
        let executing = world.executing();
        assert_eq!(executing.len(), 2, "{executing:?}");
        world.look(world.ids[2]);
        world.settle();
    }
}

/// An instance was idle during a million executions of another: it gets its credit, then its share.
#[test]
fn a_long_idle_instance_gets_only_bounded_credit() {
    let mut world = World::new(&[instance(0, 1, 1), instance(1, 1, 1)]);
    world.waiting.insert(0, usize::MAX);
    run(&mut world, 20_000);
    world.waiting.insert(1, usize::MAX);
    let before = world.executed[&world.ids[0]];
    run(&mut world, 2 * MAX_CREDIT as usize);
    let [first, second] = [0, 1].map(|number| world.executed[&world.ids[number]]);
    let (first, second) = (first - before, second);
    assert!(second.abs_diff(MAX_CREDIT + MAX_CREDIT / 2) <= 3, "{first} and {second}");
}

/// The other instance of the queue has executed less, but does not count.
#[test]
fn a_permit_of_one_instance_waits_for_that_instance() {
    let mut world = World::new(&[instance(0, 1, 5), instance(0, 1, 1)]);
    let [first, second] = [world.ids[0], world.ids[1]];
    for _ in 0..3 {
        let granted = world.ledger.claim(first, None);
        assert!(granted.may_begin && granted.others.is_empty());
        assert!(!world.ledger.claim(second, None).may_begin, "there is one copy");
        assert_eq!(world.ledger.rest(second), []);
        world.ledger.looks_for_work(first);
    }
    assert!(!world.ledger.claim(first, Some(1)).may_begin, "it is the turn of the other");
    assert!(world.ledger.is_granted(second));
}

/// A load changes the default supply, which is the largest demand.
#[test]
fn the_supply_follows_the_loaded_models() {
    let mut world = World::new(&[instance(0, 1, 1), instance(0, 1, 1)]);
    world.apply(Event::Arrival(0));
    world.apply(Event::Arrival(0));
    assert_eq!(world.executing().len(), 1, "there is one copy");
    let large = MemberId { queue: 1, index: 2 };
    let granted = world.ledger.add(large, instance(1, 2, 1).demand(), 1).expect("added");
    assert_eq!(granted.len(), 1, "there are two copies");
    world.wake(granted);
    world.settle();
    assert_eq!(world.executing().len(), 2);
    world.ledger.remove(large);
    let first = world.executing()[0];
    world.apply(Event::Arrival(0));
    world.look(first);
    world.settle();
    assert_eq!(world.executing().len(), 1, "there is one again");
}
