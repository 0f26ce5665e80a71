//! The batching decision, priorities and time-outs, case by case.

use std::time::{Duration, Instant};

use galatea_config::{QueuePolicy, TimeoutAction};

use super::fake::{Fake, MS, batching, fake, joins};
use crate::queue::{
    DropReason, Placement,
    batching::{BatchRules, Decision, PullRequest, next_batch},
    priority_queue::PriorityQueue,
};

fn with_priority(priority: u64, request: Fake) -> Fake {
    Fake { placement: Placement { priority, timeout: None }, ..request }
}

/// Decides with requests of these sizes at hand, the oldest of this age, at most 8 items in a batch.
#[track_caller]
fn check(preferred: &[u32], delay_ms: u32, age_ms: u32, sizes: &[u64], expected: &str) {
    let config = batching(preferred, MS * delay_ms);
    let rules = BatchRules::dynamic(&config, 8);
    let start = Instant::now();
    let mut queue = PriorityQueue::new(Some(&config), 1);
    for (id, &items) in sizes.iter().enumerate() {
        queue.push(fake(id, items, start)).expect("no limit");
    }
    let got = match next_batch(&mut queue, &rules, joins, PullRequest::at(start + MS * age_ms)) {
        Decision::Take(n) => format!("take {n}"),
        Decision::Wait(w) => {
            format!("wait until {} or {}", (w.until - start).as_millis(), w.enough_items)
        }
        Decision::Empty => "empty".to_owned(),
    };
    assert_eq!(got, expected, "preferred {preferred:?}, delay {delay_ms}, age {age_ms}: {sizes:?}");
}

#[test]
fn without_a_delay_the_waiting_requests_are_sent() {
    check(&[], 0, 0, &[], "empty");
    check(&[], 0, 0, &[1; 5], "take 5");
    check(&[], 0, 0, &[1; 20], "take 8");
    check(&[], 0, 0, &[3, 3, 3], "take 2");
    check(&[], 0, 0, &[9], "take 1");
}

#[test]
fn without_a_delay_the_largest_reached_preferred_size_is_sent() {
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
fn with_look_ahead_later_fitting_requests_move_forward() {
    let config = batching(&[], Duration::ZERO);
    let now = Instant::now();
    let taken = |clients: [u64; 2], look_ahead: usize| {
        let mut queue = PriorityQueue::new(Some(&config), 8);
        for (id, shape) in [1, 2, 1, 3, 1, 2].into_iter().enumerate() {
            let client = Some(clients[id % 2]);
            queue.push(Fake { shape, client, ..fake(id, 1, now) }).expect("no limit");
        }
        let rules = BatchRules::dynamic(&config, 8).looking_ahead(look_ahead);
        let mut batches = Vec::new();
        while let Decision::Take(count) =
            next_batch(&mut queue, &rules, joins, PullRequest::at(now))
        {
            batches.push(queue.take(count).iter().map(|f| f.id).collect::<Vec<_>>());
        }
        batches
    };
    assert_eq!(taken([7, 7], 0), [[0], [1], [2], [3], [4], [5]]);
    assert_eq!(taken([7, 7], 1), [vec![0, 2], vec![1], vec![3], vec![4], vec![5]]);
    assert_eq!(taken([7, 7], 9), [vec![0, 2, 4], vec![1, 5], vec![3]]);
    assert_eq!(taken([7, 8], 9), [vec![0, 2, 4], vec![1, 5], vec![3]], "two clients");
}

#[test]
fn a_request_of_another_shape_ends_the_batch() {
    let config = batching(&[], MS * 10);
    let (rules, start) = (BatchRules::dynamic(&config, 8), Instant::now());
    let mut queue = PriorityQueue::new(Some(&config), 1);
    for (id, shape) in [0, 0, 1, 0].into_iter().enumerate() {
        let request = Fake { shape, ..fake(id, 1, start) };
        queue.push(request).expect("no limit");
    }
    assert_eq!(next_batch(&mut queue, &rules, joins, PullRequest::at(start)), Decision::Take(2));
}

#[test]
fn the_delay_counts_from_the_oldest_request_and_timeouts_shorten_it() {
    let mut config = batching(&[], MS * 10);
    config.default_queue_policy.default_timeout = Some(MS * 30);
    config.default_queue_policy.allows_timeout_override = true;
    let (rules, start) = (BatchRules::dynamic(&config, 8), Instant::now());
    let mut queue = PriorityQueue::new(Some(&config), 1);
    queue.push(fake(0, 1, start)).expect("no limit");
    let placement = Placement { timeout: Some(MS * 2), ..Placement::default() };
    let urgent = Fake { placement, ..fake(1, 1, start + MS * 4) };
    queue.push(urgent).expect("no limit");
    let decision = next_batch(&mut queue, &rules, joins, PullRequest::at(start + MS * 5));
    assert!(matches!(decision, Decision::Wait(w) if w.until == start + MS * 6), "{decision:?}");
    let decision = next_batch(&mut queue, &rules, joins, PullRequest::at(start + MS * 6));
    assert!(matches!(decision, Decision::Wait(w) if w.until == start + MS * 10), "{decision:?}");
    let dropped = queue.take_dropped();
    assert!(matches!(&dropped[..], [(Fake { id: 1, .. }, DropReason::Expired)]), "{dropped:?}");
}

#[test]
fn a_request_may_only_shorten_its_timeout_and_only_if_allowed() {
    let expiry = |allows_timeout_override, wanted: u32| {
        let mut config = batching(&[], Duration::ZERO);
        config.default_queue_policy.default_timeout = Some(MS * 30);
        config.default_queue_policy.allows_timeout_override = allows_timeout_override;
        let placement = Placement { priority: 0, timeout: Some(MS * wanted) };
        let start = Instant::now();
        let request = Fake { placement, ..fake(0, 1, start) };
        let expires_at = PriorityQueue::new(Some(&config), 1).push(request);
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
    let mut queue = PriorityQueue::new(Some(&config), 1);
    for (id, priority, queued_at) in
        [(0, 2, start), (1, 1, start), (2, 0, start + MS * 2), (3, 99, start + MS * 2)]
    {
        queue.push(with_priority(priority, fake(id, 1, queued_at))).expect("no limit");
    }
    let decision = next_batch(&mut queue, &rules, joins, PullRequest::at(start + MS * 2));
    assert_eq!(decision, Decision::Take(4));
    let order: Vec<_> = queue.take(4).iter().map(|f| f.id).collect();
    assert_eq!(order, [2, 3, 1, 0]);
}

#[test]
fn a_full_level_refuses_while_others_accept() {
    let mut config = batching(&[], Duration::ZERO);
    config.priority_levels = 2;
    config.default_priority_level = 2;
    let mut policy = QueuePolicy::default();
    policy.max_queue_size = 1;
    config.priority_queue_policies.insert(1, policy);
    let start = Instant::now();
    let mut queue = PriorityQueue::new(Some(&config), 1);
    let mut push = |priority| queue.push(with_priority(priority, fake(0, 1, start))).is_ok();
    assert_eq!([push(1), push(1), push(2), push(2)], [true, false, true, true]);
}

/// Each request has its own level: only levels with requests exist, and a few more.
#[test]
fn levels_exist_only_while_they_have_requests() {
    const REQUESTS: usize = 20_000;
    let mut config = batching(&[], Duration::ZERO);
    config.priority_levels = u64::MAX;
    config.default_priority_level = u64::MAX;
    config.default_queue_policy.default_timeout = Some(MS);
    let start = Instant::now();
    let mut queue = PriorityQueue::new(Some(&config), 1);
    let level_of =
        |id: usize| u64::MAX - (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_000_007;
    let fill = |queue: &mut PriorityQueue<Fake>, is_abandoned| {
        for id in 0..REQUESTS {
            let request = Fake { is_abandoned, ..fake(id, 1, start) };
            queue.push(with_priority(level_of(id), request)).expect("no limit");
        }
        assert_eq!((queue.len(), queue.item_count()), (REQUESTS, REQUESTS as u64));
        assert!(queue.existing_levels() > REQUESTS / 2);
    };
    let is_forgotten = |queue: &PriorityQueue<Fake>| {
        assert_eq!((queue.len(), queue.item_count()), (0, 0));
        assert!(queue.existing_levels() <= 8);
    };

    fill(&mut queue, false);
    let mut levels = Vec::new();
    while queue.len() > 0 {
        levels.extend(queue.take(7).iter().map(|request| request.placement.priority));
    }
    assert!(levels.is_sorted());
    assert_eq!(levels.len(), REQUESTS);
    is_forgotten(&queue);

    fill(&mut queue, false);
    let (expired, next) = queue.take_expired(start + MS);
    assert_eq!((expired.len(), next), (REQUESTS, None));
    is_forgotten(&queue);

    fill(&mut queue, true);
    assert_eq!(queue.take_abandoned().len(), REQUESTS);
    is_forgotten(&queue);

    fill(&mut queue, false);
    let rules = BatchRules::dynamic(&config, 8);
    assert_eq!(next_batch(&mut queue, &rules, joins, PullRequest::at(start + MS)), Decision::Empty);
    assert_eq!(queue.take_dropped().len(), REQUESTS);
    is_forgotten(&queue);
}

#[test]
fn expired_requests_leave_from_any_position() {
    let mut config = batching(&[], Duration::ZERO);
    config.default_queue_policy.default_timeout = Some(MS * 30);
    config.default_queue_policy.allows_timeout_override = true;
    let start = Instant::now();
    let mut queue = PriorityQueue::new(Some(&config), 1);
    for (id, timeout) in [20, 5, 0, 10, 5].into_iter().enumerate() {
        let placement = Placement { timeout: Some(MS * timeout), ..Placement::default() };
        let client = Some(id as u64 % 2);
        let request = Fake { placement, client, ..fake(id, 1, start) };
        queue.push(request).expect("no limit");
    }
    let mut expired_at = |ms: u32| {
        let (expired, next) = queue.take_expired(start + MS * ms);
        let mut ids: Vec<_> = expired.iter().map(|request| request.id).collect();
        ids.sort_unstable();
        (ids, next.map(|next| (next - start).as_millis()))
    };
    assert_eq!(expired_at(4), (vec![], Some(5)));
    assert_eq!(expired_at(5), (vec![1, 4], Some(10)));
    assert_eq!(expired_at(25), (vec![0, 3], Some(30)));
    assert_eq!(expired_at(30), (vec![2], None));
    assert_eq!((queue.len(), queue.item_count()), (0, 0));
}
