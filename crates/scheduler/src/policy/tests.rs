use std::collections::VecDeque;

use galatea_config::{QueuePolicy, TimeoutAction};
use proptest::prelude::*;

use super::*;
use crate::queue::{DropReason, Placement};

#[derive(Clone, Debug, PartialEq)]
struct Fake {
    id: usize,
    items: u64,
    shape: u8,
    queued_at: Instant,
    is_abandoned: bool,
}

impl Queued for Fake {
    fn item_count(&self) -> u64 {
        self.items
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }
}

fn same_shape(a: &Fake, b: &Fake) -> bool {
    a.shape == b.shape
}

const MS: Duration = Duration::from_millis(1);

fn batching(preferred: &[u32], delay: Duration) -> DynamicBatching {
    DynamicBatching {
        preferred_batch_sizes: preferred.to_vec(),
        max_queue_delay: delay,
        preserves_ordering: false,
        priority_levels: 0,
        default_priority_level: 0,
        default_queue_policy: QueuePolicy::default(),
        priority_queue_policies: Default::default(),
    }
}

fn fake(id: usize, items: u64, queued_at: Instant) -> Fake {
    Fake { id, items, shape: 0, queued_at, is_abandoned: false }
}

/// Decides with requests of these sizes at hand, the oldest of this age, at most 8 items in a batch.
#[track_caller]
fn check(preferred: &[u32], delay_ms: u32, age_ms: u32, sizes: &[u64], expected: &str) {
    let config = batching(preferred, MS * delay_ms);
    let rules = BatchRules::dynamic(&config, 8);
    let start = Instant::now();
    let mut queue = BatchQueue::from_config(&config);
    for (id, &items) in sizes.iter().enumerate() {
        queue.push(fake(id, items, start), Placement::default()).expect("no limit");
    }
    let got = match next_batch(&mut queue, &rules, same_shape, start + MS * age_ms, false) {
        Decision::Take(n) => format!("take {n}"),
        Decision::Wait(w) => {
            format!("wait until {} or {}", (w.until - start).as_millis(), w.enough_items)
        }
        Decision::Empty => "empty".to_owned(),
    };
    assert_eq!(got, expected, "preferred {preferred:?}, delay {delay_ms}, age {age_ms}: {sizes:?}");
}

#[test]
fn without_a_delay_what_there_is_is_sent() {
    check(&[], 0, 0, &[], "empty");
    check(&[], 0, 0, &[1; 5], "take 5");
    check(&[], 0, 0, &[1; 20], "take 8");
    check(&[], 0, 0, &[3, 3, 3], "take 2");
    check(&[], 0, 0, &[9], "take 1");
}

#[test]
fn without_a_delay_the_largest_preferred_size_reached_is_sent() {
    check(&[2, 4], 0, 0, &[1; 3], "take 2");
    check(&[2, 4], 0, 0, &[1; 5], "take 4");
    check(&[2, 4], 0, 0, &[1; 1], "take 1");
    // 3 + 3 would be past every preferred size.
    check(&[4], 0, 0, &[3, 3], "take 1");
}

#[test]
fn with_a_delay_the_batch_waits_for_a_preferred_size() {
    check(&[], 10, 0, &[1; 5], "wait until 10 or 8");
    check(&[], 10, 3, &[1; 8], "take 8");
    check(&[], 10, 10, &[1; 5], "take 5");
    check(&[4, 6], 10, 0, &[1; 3], "wait until 10 or 4");
    check(&[4, 6], 10, 0, &[1; 5], "take 4");
    check(&[4, 6], 10, 0, &[1; 7], "take 6");
    check(&[4, 6], 10, 10, &[1; 5], "take 5");
    check(&[4, 6], 10, 10, &[1; 20], "take 8");
    check(&[4, 6], 10, 0, &[3, 2], "wait until 10 or 6");
}

#[test]
fn requests_of_another_shape_end_a_batch() {
    let config = batching(&[], MS * 10);
    let (rules, start) = (BatchRules::dynamic(&config, 8), Instant::now());
    let mut queue = BatchQueue::from_config(&config);
    for (id, shape) in [0, 0, 1, 0].into_iter().enumerate() {
        let request = Fake { shape, ..fake(id, 1, start) };
        queue.push(request, Placement::default()).expect("no limit");
    }
    assert_eq!(next_batch(&mut queue, &rules, same_shape, start, false), Decision::Take(2));
}

#[test]
fn the_delay_counts_from_the_oldest_request_and_a_timeout_shortens_the_wait() {
    let mut config = batching(&[], MS * 10);
    config.default_queue_policy.default_timeout = Some(MS * 30);
    config.default_queue_policy.allows_timeout_override = true;
    let (rules, start) = (BatchRules::dynamic(&config, 8), Instant::now());
    let mut queue = BatchQueue::from_config(&config);
    queue.push(fake(0, 1, start), Placement::default()).expect("no limit");
    let urgent = Placement { timeout: Some(MS * 2), ..Placement::default() };
    queue.push(fake(1, 1, start + MS * 4), urgent).expect("no limit");
    let decision = next_batch(&mut queue, &rules, same_shape, start + MS * 5, false);
    assert!(matches!(decision, Decision::Wait(w) if w.until == start + MS * 6), "{decision:?}");
    let decision = next_batch(&mut queue, &rules, same_shape, start + MS * 6, false);
    assert!(matches!(decision, Decision::Wait(w) if w.until == start + MS * 10), "{decision:?}");
    let dropped = queue.take_dropped();
    assert!(matches!(&dropped[..], [(Fake { id: 1, .. }, DropReason::Expired)]), "{dropped:?}");
}

#[test]
fn a_request_may_only_shorten_its_timeout_and_only_where_allowed() {
    let expiry = |allows_timeout_override, wanted: u32| {
        let mut config = batching(&[], Duration::ZERO);
        config.default_queue_policy = QueuePolicy {
            default_timeout: Some(MS * 30),
            allows_timeout_override,
            ..QueuePolicy::default()
        };
        let placement = Placement { priority: 0, timeout: Some(MS * wanted) };
        let start = Instant::now();
        let expires_at = BatchQueue::from_config(&config).push(fake(0, 1, start), placement);
        expires_at.expect("no limit").expect("a timeout") - start
    };
    assert_eq!(expiry(true, 10), MS * 10);
    assert_eq!(expiry(true, 40), MS * 30);
    assert_eq!(expiry(true, 0), MS * 30);
    assert_eq!(expiry(false, 10), MS * 30);
}

#[test]
fn delayed_requests_are_served_after_the_timely_ones_of_their_level() {
    let mut config = batching(&[], Duration::ZERO);
    config.priority_levels = 2;
    config.default_priority_level = 1;
    config.default_queue_policy.timeout_action = TimeoutAction::Delay;
    config.default_queue_policy.default_timeout = Some(MS);
    let (rules, start) = (BatchRules::dynamic(&config, 8), Instant::now());
    let mut queue = BatchQueue::from_config(&config);
    let place = |priority| Placement { priority, timeout: None };
    queue.push(fake(0, 1, start), place(2)).expect("no limit");
    queue.push(fake(1, 1, start), place(1)).expect("no limit");
    queue.push(fake(2, 1, start + MS * 2), place(0)).expect("no limit");
    queue.push(fake(3, 1, start + MS * 2), place(99)).expect("no limit");
    let decision = next_batch(&mut queue, &rules, same_shape, start + MS * 2, false);
    assert_eq!(decision, Decision::Take(4));
    let order: Vec<_> = queue.take(4).iter().map(|f| f.id).collect();
    assert_eq!(order, [2, 3, 1, 0]);
}

#[test]
fn a_full_level_refuses_and_others_do_not() {
    let mut config = batching(&[], Duration::ZERO);
    config.priority_levels = 2;
    config.default_priority_level = 2;
    let policy = QueuePolicy { max_queue_size: 1, ..QueuePolicy::default() };
    config.priority_queue_policies.insert(1, policy);
    let start = Instant::now();
    let mut queue = BatchQueue::from_config(&config);
    let mut push =
        |priority| queue.push(fake(0, 1, start), Placement { priority, timeout: None }).is_ok();
    assert_eq!([push(1), push(1), push(2), push(2)], [true, false, true, true]);
}

/// What a simulated run of one model looks like.
#[derive(Clone, Debug)]
struct Script {
    preferred: Vec<u32>,
    delay: Duration,
    timeout: Option<(TimeoutAction, Duration)>,
    instances: usize,
    execution: Duration,
    arrivals: Vec<Arrival>,
}

#[derive(Clone, Debug)]
struct Arrival {
    after: Duration,
    items: u64,
    shape: u8,
    is_abandoned: bool,
}

const MAX_ITEMS: u64 = 8;

fn scripts() -> impl Strategy<Value = Script> {
    let arrival =
        (0u32..6, 1u64..=4, 0u8..2, 0u8..10).prop_map(|(after, items, shape, luck)| Arrival {
            after: MS * after,
            items,
            shape: shape * u8::from(luck < 3),
            is_abandoned: luck == 9,
        });
    let timeout = (any::<bool>(), 1u32..20).prop_map(|(is_delay, t)| {
        (if is_delay { TimeoutAction::Delay } else { TimeoutAction::Reject }, MS * t)
    });
    let preferred = proptest::collection::btree_set(1u32..=8, 0..3);
    (
        preferred,
        0u32..12,
        proptest::option::of(timeout),
        (1usize..4, 0u32..10),
        proptest::collection::vec(arrival, 1..40),
    )
        .prop_map(|(preferred, delay, timeout, (instances, execution), arrivals)| Script {
            preferred: preferred.into_iter().collect(),
            delay: MS * delay,
            timeout,
            instances,
            execution: MS * execution,
            arrivals,
        })
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
    queue: BatchQueue<Fake>,
    now: Instant,
    /// When each busy instance is free again.
    busy: Vec<Instant>,
    leader: Option<Waiting>,
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
            rules: BatchRules::dynamic(&config, MAX_ITEMS),
            queue: BatchQueue::from_config(&config),
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
        let Arrival { items, shape, is_abandoned, .. } = arrival;
        let request = Fake { id, items, shape, queued_at: self.now, is_abandoned };
        let fits = self.queue.front().is_none_or(|f| same_shape(f, &request));
        let expires_at = self.queue.push(request, Placement::default()).expect("no limit");
        let is_ended = |w: Waiting| w.is_ended_by(self.queue.item_count(), expires_at, fits);
        if self.leader.is_none_or(is_ended) {
            self.leader = None;
            self.pull();
        }
    }

    /// Lets free instances pull until nothing is left for them.
    fn pull(&mut self) {
        while self.busy.len() < self.script.instances {
            let decision = next_batch(&mut self.queue, &self.rules, same_shape, self.now, false);
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
    fn batches_are_uniform_and_no_larger_than_allowed(script in scripts()) {
        for Taken { batch, .. } in Simulation::new(script).run().taken {
            prop_assert!(batch.iter().map(|f| f.items).sum::<u64>() <= MAX_ITEMS);
            prop_assert!(batch.iter().all(|f| same_shape(f, &batch[0])));
        }
    }

    #[test]
    fn requests_are_taken_in_the_order_of_arrival(mut script in scripts()) {
        // A DELAY timeout reorders on purpose.
        script.timeout = script.timeout.map(|(_, t)| (TimeoutAction::Reject, t));
        let taken = Simulation::new(script).run().taken;
        let ids: Vec<_> = taken.iter().flat_map(|t| &t.batch).map(|f| f.id).collect();
        prop_assert!(ids.is_sorted(), "{:?}", ids);
    }

    #[test]
    fn nobody_waits_longer_than_the_delay_while_an_instance_is_free(mut script in scripts()) {
        script.instances = script.arrivals.len();
        let delay = script.delay;
        for Taken { at, batch, .. } in Simulation::new(script).run().taken {
            for request in batch {
                prop_assert!(at <= request.queued_at + delay, "{:?}", request);
            }
        }
    }

    #[test]
    fn a_preferred_size_within_reach_is_taken_until_the_delay_is_over(mut script in scripts()) {
        for arrival in &mut script.arrivals {
            *arrival = Arrival { items: 1, shape: 0, is_abandoned: false, ..arrival.clone() };
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
