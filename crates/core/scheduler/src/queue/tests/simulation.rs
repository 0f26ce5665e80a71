//! Properties of the batching decision over whole runs of a model, on a clock that jumps from event to event.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use galatea_config::TimeoutAction;
use proptest::prelude::*;

use super::fake::{Fake, MS, batching, fake, joins, same_shape};
use crate::queue::{
    DropReason,
    batching::{BatchRules, Decision, GrowingBatch, PullRequest, next_batch},
    priority_queue::PriorityQueue,
};

/// What a simulated run of one model looks like.
#[derive(Clone, Debug)]
struct Script {
    preferred: Vec<u32>,
    delay: Duration,
    timeout: Option<(TimeoutAction, Duration)>,
    instances: usize,
    execution: Duration,
    turn_items: u64,
    look_ahead: usize,
    arrivals: Vec<Arrival>,
}

impl Script {
    /// The same with all requests of this client.
    fn of_client(mut self, client: Option<u64>) -> Self {
        self.arrivals.iter_mut().for_each(|arrival| arrival.client = client);
        self
    }
}

#[derive(Clone, Debug)]
struct Arrival {
    after: Duration,
    items: u64,
    shape: u8,
    client: Option<u64>,
    is_abandoned: bool,
}

const MAX_ITEMS: u64 = 8;

fn scripts() -> impl Strategy<Value = Script> {
    let arrival = (0u32..6, 1u64..=4, 0u8..2, proptest::option::of(0u64..4), 0u8..10).prop_map(
        |(after, items, shape, client, luck)| Arrival {
            after: MS * after,
            items,
            shape: shape * u8::from(luck < 3),
            client,
            is_abandoned: luck == 9,
        },
    );
    let timeout = (any::<bool>(), 1u32..20).prop_map(|(is_delay, t)| {
        (if is_delay { TimeoutAction::Delay } else { TimeoutAction::Reject }, MS * t)
    });
    let preferred = proptest::collection::btree_set(1u32..=8, 0..3);
    (
        preferred,
        0u32..12,
        proptest::option::of(timeout),
        (
            1usize..4,
            0u32..10,
            prop_oneof![Just(1), Just(MAX_ITEMS)],
            prop_oneof![Just(0), Just(1), Just(9)],
        ),
        proptest::collection::vec(arrival, 1..40),
    )
        .prop_map(
            |(
                preferred,
                delay,
                timeout,
                (instances, execution, turn_items, look_ahead),
                arrivals,
            )| Script {
                preferred: preferred.into_iter().collect(),
                delay: MS * delay,
                timeout,
                instances,
                execution: MS * execution,
                turn_items,
                look_ahead,
                arrivals,
            },
        )
}

struct Taken {
    at: Instant,
    batch: Vec<Fake>,
    /// Requests in the queue before this batch was taken.
    waiting: usize,
}

/// Instances that pull as the instance threads do, on a clock that jumps from event to event.
struct Simulation {
    script: Script,
    rules: BatchRules,
    queue: PriorityQueue<Fake>,
    now: Instant,
    /// When each busy instance is free again.
    busy: Vec<Instant>,
    leader: Option<GrowingBatch>,
    taken: Vec<Taken>,
    dropped: Vec<(Fake, DropReason)>,
}

impl Simulation {
    fn new(script: Script) -> Self {
        let mut config = batching(&script.preferred, script.delay);
        if let Some((timeout_action, timeout)) = script.timeout {
            config.default_queue_policy.timeout_action = timeout_action;
            config.default_queue_policy.default_timeout = Some(timeout);
        }
        Self {
            rules: BatchRules::dynamic(&config, MAX_ITEMS).looking_ahead(script.look_ahead),
            queue: PriorityQueue::new(Some(&config), script.turn_items),
            now: Instant::now(),
            busy: Vec::new(),
            leader: None,
            taken: Vec::new(),
            dropped: Vec::new(),
            script,
        }
    }

    fn run(mut self) -> Self {
        let mut arrivals: VecDeque<_> = self.script.arrivals.clone().into();
        let mut next_arrival = self.now;
        let mut id = 0;
        loop {
            let due = arrivals.front().map(|a| next_arrival + a.after);
            let leader = self.leader.map(|w| w.until);
            let free = self.busy.iter().min().copied();
            let Some(next) = [due, leader, free].into_iter().flatten().min() else { break };
            self.now = self.now.max(next);
            if due == Some(next) {
                next_arrival = next;
                let arrival = arrivals.pop_front().expect("it is due");
                self.arrive(id, arrival);
                id += 1;
            } else if free == Some(next) {
                let index = self.busy.iter().position(|&t| t == next).expect("one is free");
                self.busy.remove(index);
                self.pull();
            } else {
                self.leader = None;
                self.pull();
            }
        }
        self
    }

    fn arrive(&mut self, id: usize, arrival: Arrival) {
        let Arrival { items, shape, client, is_abandoned, .. } = arrival;
        let request = Fake { shape, client, is_abandoned, ..fake(id, items, self.now) };
        let fits = self.queue.front().is_none_or(|f| same_shape(f, &request));
        let expires_at = self.queue.push(request).expect("no limit");
        let is_ended =
            |batch: GrowingBatch| batch.is_ended_by(self.queue.item_count(), expires_at, fits);
        if self.leader.is_none_or(is_ended) {
            self.leader = None;
            self.pull();
        }
    }

    /// Makes free instances pull until nothing is left for them.
    fn pull(&mut self) {
        while self.busy.len() < self.script.instances {
            let decision =
                next_batch(&mut self.queue, &self.rules, joins, PullRequest::at(self.now));
            self.dropped.extend(self.queue.take_dropped());
            match decision {
                Decision::Empty => break,
                Decision::Wait(waiting) => {
                    assert!(waiting.until > self.now, "a wait that is over");
                    self.leader.get_or_insert(waiting);
                    break;
                }
                Decision::Take(count) => self.execute(count),
            }
        }
    }

    fn execute(&mut self, count: usize) {
        let waiting = self.queue.len();
        self.taken.push(Taken { at: self.now, batch: self.queue.take(count), waiting });
        self.busy.push(self.now + self.script.execution);
    }
}

proptest! {
    #[test]
    fn every_request_is_executed_or_dropped_exactly_once(script in scripts()) {
        let done = Simulation::new(script.clone()).run();
        let taken = done.taken.iter().flat_map(|t| &t.batch).map(|f| f.id);
        let mut ids: Vec<_> = taken.chain(done.dropped.iter().map(|(f, _)| f.id)).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..script.arrivals.len()).collect::<Vec<_>>());
        prop_assert_eq!((done.queue.len(), done.queue.item_count()), (0, 0));
    }

    #[test]
    fn only_expired_and_abandoned_requests_are_dropped(script in scripts()) {
        let done = Simulation::new(script.clone()).run();
        for (request, reason) in &done.dropped {
            match reason {
                DropReason::Abandoned => prop_assert!(request.is_abandoned),
                DropReason::Expired => {
                    prop_assert!(matches!(script.timeout, Some((TimeoutAction::Reject, _))));
                }
            }
        }
        prop_assert!(done.taken.iter().flat_map(|t| &t.batch).all(|f| !f.is_abandoned));
    }

    #[test]
    fn batches_are_uniform_and_within_the_maximum_size(script in scripts()) {
        for Taken { batch, .. } in Simulation::new(script).run().taken {
            prop_assert!(batch.iter().map(|f| f.items).sum::<u64>() <= MAX_ITEMS);
            prop_assert!(batch.iter().all(|f| same_shape(f, &batch[0])));
        }
    }

    #[test]
    fn requests_of_each_client_are_taken_in_order_of_arrival(mut script in scripts()) {
        // Looking ahead and a DELAY timeout reorder on purpose.
        script.look_ahead = 0;
        script.timeout = script.timeout.map(|(_, t)| (TimeoutAction::Reject, t));
        let taken = Simulation::new(script).run().taken;
        for client in [None, Some(0), Some(1), Some(2), Some(3)] {
            let all = taken.iter().flat_map(|t| &t.batch);
            let ids: Vec<_> = all.filter(|f| f.client == client).map(|f| f.id).collect();
            prop_assert!(ids.is_sorted(), "{:?}", ids);
        }
    }

    #[test]
    fn a_single_client_is_served_in_order_of_arrival(mut script in scripts()) {
        script.look_ahead = 0;
        script.timeout = script.timeout.map(|(_, t)| (TimeoutAction::Reject, t));
        for client in [None, Some(7)] {
            let taken = Simulation::new(script.clone().of_client(client)).run().taken;
            let ids: Vec<_> = taken.iter().flat_map(|t| &t.batch).map(|f| f.id).collect();
            prop_assert!(ids.is_sorted(), "{:?}", ids);
        }
    }

    #[test]
    fn the_oldest_request_is_in_every_batch(mut script in scripts()) {
        script.timeout = None;
        let taken = Simulation::new(script.of_client(None)).run().taken;
        let firsts: Vec<_> = taken.iter().map(|t| t.batch[0].id).collect();
        prop_assert!(firsts.is_sorted(), "{:?}", firsts);
        for Taken { batch, .. } in &taken {
            prop_assert!(batch.is_sorted_by_key(|f| f.id), "{:?}", batch);
        }
    }

    #[test]
    fn no_request_waits_longer_than_the_delay_while_an_instance_is_free(mut script in scripts()) {
        script.instances = script.arrivals.len();
        let delay = script.delay;
        for Taken { at, batch, .. } in Simulation::new(script).run().taken {
            for request in batch {
                prop_assert!(at <= request.queued_at + delay, "{:?}", request);
            }
        }
    }

    #[test]
    fn a_reachable_preferred_size_is_waited_for_until_the_delay_ends(mut script in scripts()) {
        for arrival in &mut script.arrivals {
            *arrival = Arrival {
                items: 1,
                shape: 0,
                client: None,
                is_abandoned: false,
                ..arrival.clone()
            };
        }
        script.timeout = None;
        if script.preferred.is_empty() {
            script.preferred.push(8);
        }
        let (preferred, delay) = (script.preferred.clone(), script.delay);
        for Taken { at, batch, waiting } in Simulation::new(script).run().taken {
            let is_overdue = !delay.is_zero() && at >= batch[0].queued_at + delay;
            let within_reach = preferred.iter().filter(|&&p| p as usize <= waiting);
            match within_reach.max() {
                Some(&best) if !is_overdue => prop_assert_eq!(batch.len(), best as usize),
                _ => prop_assert_eq!(batch.len(), waiting.min(8)),
            }
        }
    }
}
