//! Single situations, each as a client would see it.

use std::time::Instant;

use galatea_types::{CorrelationId, Error};

use super::fake::{Done, Fake, MS, config, fake, sequences};
use crate::{
    queue::Decision,
    sequence::{PushedRequest, SequenceDrop, SequenceRefusal, Sequences, Step, StepEnd},
};

const OLDEST: &str = "oldest { max_candidate_sequences: 2 }";

fn next(instance: usize) -> PushedRequest {
    PushedRequest { next: Some((instance, true)), restarts: None }
}

const WAITS: PushedRequest = PushedRequest { next: None, restarts: None };

#[track_caller]
fn push(sequences: &mut Sequences<Fake>, request: Fake) -> PushedRequest {
    let now = request.queued_at;
    sequences.push(request, now).map_err(|(_, refusal)| refusal).expect("accepted")
}

/// The rows of the next batch of an instance by the numbers of their requests; `None`: not ready. They are executed.
#[track_caller]
fn run(sequences: &mut Sequences<Fake>, instance: usize, now: Instant) -> Vec<Option<usize>> {
    let steps = take(sequences, instance, now);
    let ids = steps.iter().map(|step| step.as_ref().map(|step| step.request.id)).collect();
    sequences.finish(instance, steps.into_iter().flatten().map(done), now);
    ids
}

fn take(
    sequences: &mut Sequences<Fake>,
    instance: usize,
    now: Instant,
) -> Vec<Option<Step<Fake, Done>>> {
    match sequences.decide(instance, now, false) {
        Decision::Take(count) => sequences.take(instance, count, now),
        _ => Vec::new(),
    }
}

fn done(step: Step<Fake, Done>) -> StepEnd<Fake, Done> {
    let mut states = step.states;
    states.push(step.request.id);
    StepEnd { ticket: step.ticket, states, again: None }
}

fn dropped(sequences: &mut Sequences<Fake>) -> Vec<(usize, &'static str)> {
    let reason = |reason: &SequenceDrop| match reason {
        SequenceDrop::Abandoned => "abandoned",
        SequenceDrop::Cancelled => "cancelled",
        SequenceDrop::Expired => "expired",
        SequenceDrop::Lost(_) => "lost",
    };
    sequences.take_dropped().iter().map(|(request, why)| (request.id, reason(why))).collect()
}

#[test]
fn an_evicted_sequence_is_reported_once_and_its_slot_is_free() {
    let now = Instant::now();
    let mut all = sequences(&config(0, "oldest { max_candidate_sequences: 2 }"), 1, (0, 0), now);
    push(&mut all, fake(1, 10, "s", now));
    push(&mut all, fake(2, 20, "s", now));
    assert_eq!(run(&mut all, 0, now), [Some(1)]);
    assert_eq!(run(&mut all, 0, now), [Some(2)]);
    // The older one has a request, and the other is new in the backlog.
    push(&mut all, fake(3, 10, "", now));
    assert_eq!(push(&mut all, fake(4, 30, "s", now)), WAITS);
    assert_eq!(all.bytes_at_rest(usize::MAX), 1);
    let (id, states) = all.give_way(now).expect("one rests");
    assert_eq!((id, states), (CorrelationId::Number(20), vec![2]));
    assert!(all.give_way(now).is_none() && all.resting_since().is_none());
    assert_eq!(run(&mut all, 0, now), [Some(3)]);
    assert_eq!(run(&mut all, 0, now), [Some(4)], "it has the free slot");
    let refused = all.push(fake(5, 20, "", now), now).expect_err("told");
    assert!(matches!(refused.1, SequenceRefusal::GaveWay));
    let refused = all.push(fake(6, 20, "", now), now).expect_err("told before");
    assert!(matches!(refused.1, SequenceRefusal::NotStarted));
}

#[test]
fn the_latest_evicted_sequences_are_remembered() {
    let now = Instant::now();
    let mut all = sequences(&config(0, "oldest { max_candidate_sequences: 2 }"), 1, (0, 0), now);
    for number in 1..=3000 {
        push(&mut all, fake(number as usize, number, "s", now));
        run(&mut all, 0, now);
        all.give_way(now).expect("it rests");
    }
    assert_eq!(all.live_count(), 1024);
    let refused = all.push(fake(1, 3000, "", now), now).expect_err("told");
    assert!(matches!(refused.1, SequenceRefusal::GaveWay));
    let refused = all.push(fake(1, 1, "", now), now).expect_err("forgotten");
    assert!(matches!(refused.1, SequenceRefusal::NotStarted));
}

#[test]
fn each_sequence_has_its_row_and_idle_rows_are_not_ready() {
    let now = Instant::now();
    let mut all = sequences(&config(4, "direct {}"), 1, (0, 0), now);
    for (id, sequence) in [(1, 10), (2, 20), (3, 30)] {
        assert_eq!(push(&mut all, fake(id, sequence, "s", now)), next(0));
    }
    assert_eq!(run(&mut all, 0, now), [Some(1), Some(2), Some(3)]);
    push(&mut all, fake(4, 30, "", now));
    assert_eq!(run(&mut all, 0, now), [None, None, Some(4)]);
    push(&mut all, fake(5, 10, "e", now));
    push(&mut all, fake(6, 30, "", now));
    push(&mut all, fake(7, 30, "", now));
    assert_eq!(run(&mut all, 0, now), [Some(5), None, Some(6)]);
    // The first row is free again, and the lowest free one is taken.
    push(&mut all, fake(8, 40, "s", now));
    assert_eq!(run(&mut all, 0, now), [Some(8), None, Some(7)]);
    assert!(run(&mut all, 0, now).is_empty());
}

#[test]
fn requests_of_another_shape_wait_for_the_next_batch() {
    let now = Instant::now();
    let mut all = sequences(&config(4, "direct {}"), 1, (0, 0), now);
    push(&mut all, fake(1, 1, "s", now));
    push(&mut all, Fake { shape: 1, ..fake(2, 2, "s", now) });
    push(&mut all, fake(3, 3, "s", now));
    assert_eq!(run(&mut all, 0, now), [Some(1), None, Some(3)]);
    assert_eq!(run(&mut all, 0, now), [None, Some(2)]);
}

/// The model was replaced: sequences with a slot send their next request to the new one.
#[test]
fn idle_sequences_lose_their_slots_when_the_model_is_replaced() {
    let now = Instant::now();
    let mut all = sequences(&config(1, "direct {}"), 2, (0, 0), now);
    (1..=5).for_each(|n| drop(push(&mut all, fake(n, n as u64, "s", now))));
    assert_eq!((run(&mut all, 0, now), run(&mut all, 1, now)), (vec![Some(1)], vec![Some(2)]));
    push(&mut all, fake(6, 2, "", now));
    all.expect_no_more(now);
    // The first is over. The second has something to do.
    assert_eq!(all.take_fed(), [0]);
    assert_eq!((run(&mut all, 0, now), run(&mut all, 1, now)), (vec![Some(3)], vec![Some(6)]));
    assert_eq!((run(&mut all, 0, now), run(&mut all, 1, now)), (vec![Some(4)], vec![Some(5)]));
    assert!(run(&mut all, 0, now).is_empty() && all.len() == 0);
    let late = all.push(fake(7, 4, "", now), now).map_err(|(_, refusal)| refusal);
    assert!(matches!(late, Err(SequenceRefusal::NotStarted)), "it is over");
}

#[test]
fn sequences_spread_over_instances_and_wait_in_order_of_arrival() {
    let now = Instant::now();
    let mut all = sequences(&config(2, "direct {}"), 2, (0, 0), now);
    let places: Vec<_> = (1..=5).map(|n| push(&mut all, fake(n, n as u64, "s", now))).collect();
    assert_eq!(places, [next(0), next(1), next(0), next(1), WAITS]);
    assert_eq!(push(&mut all, fake(6, 6, "se", now)), WAITS);
    assert_eq!(push(&mut all, fake(7, 5, "", now)), WAITS);
    assert_eq!(push(&mut all, fake(8, 3, "e", now)), next(0));
    assert_eq!(run(&mut all, 0, now), [Some(1), Some(3)]);
    assert_eq!(run(&mut all, 0, now), [None, Some(8)]);
    // The whole sequence moves to the free slot, and its instance is to be told.
    assert_eq!(all.take_fed(), [0]);
    assert_eq!(run(&mut all, 0, now), [None, Some(5)]);
    assert_eq!(run(&mut all, 0, now), [None, Some(7)]);
    assert_eq!(all.len(), 3);
}

#[test]
fn a_sequence_needs_a_start_and_its_own_id() {
    let now = Instant::now();
    let mut all = sequences(&config(2, "direct {}"), 1, (0, 0), now);
    let refusal =
        |all: &mut Sequences<Fake>, request| all.push(request, now).expect_err("refused").1;
    assert!(matches!(refusal(&mut all, fake(1, 0, "s", now)), SequenceRefusal::NoSequence));
    assert!(matches!(refusal(&mut all, fake(1, 1, "", now)), SequenceRefusal::NotStarted));
    push(&mut all, Fake { client: Some(7), ..fake(1, 1, "s", now) });
    let other = Fake { client: Some(8), ..fake(2, 1, "s", now) };
    assert!(matches!(refusal(&mut all, other), SequenceRefusal::OfAnotherClient));
    push(&mut all, Fake { client: Some(7), ..fake(3, 1, "e", now) });
    assert!(matches!(refusal(&mut all, fake(4, 1, "", now)), SequenceRefusal::NotStarted));
    // Ended, the name is free, also while its last request waits.
    push(&mut all, Fake { client: Some(8), ..fake(5, 1, "s", now) });
    assert_eq!(run(&mut all, 0, now), [Some(1), Some(5)]);
    assert_eq!(run(&mut all, 0, now), [Some(3)]);
}

#[test]
fn a_start_within_a_sequence_restarts_it_in_its_slot() {
    let now = Instant::now();
    for strategy in ["direct {}", OLDEST] {
        let mut all = sequences(&config(2, strategy), 1, (0, 0), now);
        push(&mut all, fake(1, 1, "s", now));
        push(&mut all, fake(2, 1, "", now));
        assert!(push(&mut all, fake(3, 1, "s", now)).restarts.is_some());
        push(&mut all, fake(4, 1, "", now));
        let mut states = Vec::new();
        for _ in 0..4 {
            let steps = take(&mut all, 0, now);
            states.extend(steps.iter().flatten().map(|s| (s.request.id, s.states.clone())));
            all.finish(0, steps.into_iter().flatten().map(done), now);
        }
        assert_eq!(states, [(1, vec![]), (2, vec![1]), (3, vec![]), (4, vec![3])], "{strategy}");
    }
}

#[test]
fn an_abandoned_request_ends_its_sequence() {
    let now = Instant::now();
    for strategy in ["direct {}", OLDEST] {
        let mut all = sequences(&config(2, strategy), 1, (0, 0), now);
        let first = fake(1, 1, "s", now);
        let gone = first.is_abandoned.clone();
        push(&mut all, first);
        push(&mut all, fake(2, 1, "", now));
        push(&mut all, fake(3, 2, "s", now));
        gone.set(true);
        let ids: Vec<_> = run(&mut all, 0, now).into_iter().flatten().collect();
        assert_eq!(ids, [3], "{strategy}");
        assert_eq!(dropped(&mut all), [(1, "abandoned"), (2, "cancelled")], "{strategy}");
        let refused = all.push(fake(4, 1, "", now), now).expect_err("refused").1;
        assert!(matches!(refused, SequenceRefusal::NotStarted));
    }
}

#[test]
fn abandoned_requests_are_found_wherever_they_wait() {
    let now = Instant::now();
    let mut all = sequences(&config(1, OLDEST), 1, (0, 0), now);
    let requests: Vec<Fake> = [(1, 1, "s"), (2, 1, ""), (3, 2, "s"), (4, 3, "s"), (5, 3, "")]
        .map(|(id, s, f)| fake(id, s, f, now))
        .into();
    for id in [1, 4] {
        requests[id].is_abandoned.set(true);
    }
    requests.into_iter().for_each(|request| drop(push(&mut all, request)));
    all.drop_abandoned(now);
    let expected = [(1, "cancelled"), (2, "abandoned"), (4, "cancelled"), (5, "abandoned")];
    let mut found = dropped(&mut all);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!((run(&mut all, 0, now), all.len()), (vec![Some(3)], 0));
}

#[test]
fn an_idle_sequence_frees_its_slot() {
    let start = Instant::now();
    let mut all = sequences(&config(1, "max_sequence_idle_microseconds: 5000"), 1, (0, 0), start);
    push(&mut all, fake(1, 1, "s", start));
    assert_eq!(push(&mut all, fake(2, 2, "s", start)), WAITS);
    assert_eq!(run(&mut all, 0, start + MS), [Some(1)]);
    // Not the arrival of its last request counts but the end of that.
    assert_eq!(run(&mut all, 0, start + MS * 5), []);
    let event = all.next_event().expect("something to wait for");
    assert_eq!(event, start + MS * 6);
    assert_eq!(run(&mut all, 0, event), [Some(2)]);
    let refused = all.push(fake(3, 1, "", start), event).expect_err("over").1;
    assert!(matches!(refused, SequenceRefusal::NotStarted));
}

#[test]
fn an_idle_sequence_expires_without_being_polled() {
    let start = Instant::now();
    let mut all = sequences(&config(1, "max_sequence_idle_microseconds: 5000"), 1, (0, 0), start);
    push(&mut all, fake(1, 1, "s", start));
    run(&mut all, 0, start);
    let later = start + MS * 5;
    let refused = all.push(fake(2, 1, "", later), later).expect_err("over").1;
    assert!(matches!(refused, SequenceRefusal::NotStarted));
    push(&mut all, fake(3, 1, "s", later));
    run(&mut all, 0, later);
    let latest = start + MS * 10;
    assert_eq!(push(&mut all, fake(4, 4, "s", latest)), next(0));
}

#[test]
fn a_sequence_waits_for_a_slot_only_until_its_requests_expire() {
    let start = Instant::now();
    let mut all = sequences(&config(1, "direct {}"), 1, (0, 0), start);
    push(&mut all, fake(1, 1, "s", start));
    push(&mut all, fake(2, 2, "s", start));
    push(&mut all, Fake { timeout: Some(MS * 3), ..fake(3, 2, "e", start) });
    push(&mut all, fake(4, 3, "s", start));
    assert_eq!(all.next_event(), Some(start + MS * 3));
    all.end_overdue(start + MS * 3);
    assert_eq!(dropped(&mut all), [(2, "expired"), (3, "expired")]);
    push(&mut all, fake(5, 1, "e", start));
    assert_eq!(run(&mut all, 0, start), [Some(1)]);
    assert_eq!(run(&mut all, 0, start), [Some(5)]);
    assert_eq!(run(&mut all, 0, start), [Some(4)]);
}

#[test]
fn the_oldest_strategy_puts_one_request_of_a_sequence_in_a_batch() {
    let now = Instant::now();
    let mut all = sequences(&config(4, "oldest { max_candidate_sequences: 3 }"), 1, (0, 0), now);
    let order =
        [(1, 1, "s"), (2, 1, ""), (3, 2, "s"), (4, 1, ""), (5, 3, "s"), (6, 2, "e"), (7, 4, "s")];
    for (id, sequence, flags) in order {
        push(&mut all, fake(id, sequence, flags, now));
    }
    let ids = |rows: Vec<Option<usize>>| rows.into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(ids(run(&mut all, 0, now)), [1, 3, 5]);
    assert_eq!(ids(run(&mut all, 0, now)), [2, 6]);
    assert_eq!(ids(run(&mut all, 0, now)), [4, 7]);
}

#[test]
fn a_direct_batch_waits_for_the_minimum_slot_utilization() {
    let start = Instant::now();
    let fields = "direct { max_queue_delay_microseconds: 5000 minimum_slot_utilization: 0.5 }";
    let mut all = sequences(&config(4, fields), 1, (0, 0), start);
    push(&mut all, fake(1, 1, "s", start));
    let Decision::Wait(batch) = all.decide(0, start, false) else { panic!("waits") };
    assert_eq!((batch.until, batch.enough_items), (start + MS * 5, 2));
    push(&mut all, fake(2, 2, "s", start + MS));
    assert_eq!(run(&mut all, 0, start + MS), [Some(1), Some(2)]);
    push(&mut all, fake(3, 2, "", start + MS));
    assert!(matches!(all.decide(0, start + MS * 2, false), Decision::Wait(_)));
    assert_eq!(run(&mut all, 0, start + MS * 6), [None, Some(3)]);
}

#[test]
fn held_requests_wait_until_enough_are_queued() {
    let now = Instant::now();
    let mut all = sequences(&config(1, "direct {}"), 1, (2, 1), now);
    push(&mut all, fake(1, 1, "s", now));
    push(&mut all, fake(2, 1, "", now));
    assert_eq!(all.decide(0, now, false), Decision::Empty);
    push(&mut all, fake(3, 2, "se", now));
    assert_eq!(run(&mut all, 0, now), [Some(1)]);
    assert_eq!(all.take_fed(), [0]);
}

#[test]
fn a_failed_instance_ends_its_sequences_and_reports_each_once() {
    let now = Instant::now();
    let mut all = sequences(&config(1, "direct {}"), 2, (0, 0), now);
    for n in 1..=3 {
        push(&mut all, fake(n, n as u64, "s", now));
    }
    assert_eq!((run(&mut all, 0, now), run(&mut all, 1, now)), (vec![Some(1)], vec![Some(2)]));
    push(&mut all, fake(4, 1, "", now));
    all.instance_lost(0, &Error::internal("it broke"), now);
    assert_eq!(dropped(&mut all), [(4, "lost")]);
    let lost = all.push(fake(5, 1, "", now), now).expect_err("lost").1;
    assert!(matches!(lost, SequenceRefusal::Lost(_)));
    let over = all.push(fake(6, 1, "", now), now).expect_err("over").1;
    assert!(matches!(over, SequenceRefusal::NotStarted));
    // Nothing begins in its slots before it works again; the others go on.
    assert_eq!(push(&mut all, fake(7, 1, "s", now)), WAITS);
    assert_eq!(push(&mut all, fake(8, 2, "e", now)), next(1));
    all.instance_works(0, now);
    assert_eq!(run(&mut all, 0, now), [Some(3)]);
    assert_eq!(run(&mut all, 1, now), [Some(8)]);
    assert_eq!(run(&mut all, 1, now), [Some(7)]);
}

#[test]
fn an_iterative_sequence_repeats_until_its_request_is_done() {
    let now = Instant::now();
    for strategy in ["direct {}", OLDEST] {
        let fields = format!("iterative_sequence: true {strategy}");
        let mut all = sequences(&config(2, &fields), 1, (0, 0), now);
        push(&mut all, fake(1, 0, "", now));
        push(&mut all, fake(2, 0, "", now));
        let mut executed = Vec::new();
        for round in 0..3 {
            let steps = take(&mut all, 0, now);
            executed.push(
                steps
                    .iter()
                    .flatten()
                    .map(|s| (s.request.id, s.is_first, s.states.len()))
                    .collect::<Vec<_>>(),
            );
            let ends: Vec<_> = steps
                .into_iter()
                .flatten()
                .map(|step| {
                    let mut request = step.request.clone();
                    super::super::SequenceRequest::continue_sequence(&mut request, now);
                    let again = (request.id == 1 && round < 2).then_some(request);
                    StepEnd { again, ..done(step) }
                })
                .collect();
            all.finish(0, ends, now);
        }
        let expected = [vec![(1, true, 0), (2, true, 0)], vec![(1, false, 1)], vec![(1, false, 2)]];
        assert_eq!(executed, expected, "{strategy}");
        assert_eq!((all.len(), all.live_count()), (0, 0));
    }
}

/// The request waits for the instance between its own steps, so the client is not idle. Triton ends the sequence.
#[test]
fn an_iterative_sequence_does_not_expire_between_its_own_steps() {
    let mut now = Instant::now();
    let fields = "max_sequence_idle_microseconds: 1000 iterative_sequence: true direct {}";
    let mut all = sequences(&config(2, fields), 1, (0, 0), now);
    push(&mut all, fake(1, 0, "", now));
    for round in 0..3 {
        let steps = take(&mut all, 0, now);
        assert_eq!(steps.iter().flatten().count(), 1, "round {round}");
        now += MS * 5;
        let ends: Vec<_> = steps
            .into_iter()
            .flatten()
            .map(|step| {
                let mut request = step.request.clone();
                super::super::SequenceRequest::continue_sequence(&mut request, now);
                StepEnd { again: (round < 2).then_some(request), ..done(step) }
            })
            .collect();
        all.finish(0, ends, now);
        now += MS * 5;
    }
    assert_eq!((all.len(), all.live_count(), dropped(&mut all).len()), (0, 0, 0));
}
