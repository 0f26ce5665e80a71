//! `max_inflight_requests`: how many requests of a step may be in flight over all requests to the ensemble; and the
//! memory of tensors between steps.

use galatea_types::{MemoryBudget, RequestContext};

use crate::rig::{Queue, build, decoupled, request, response, step, tensor};

#[test]
fn a_step_has_at_most_the_allowed_requests_in_progress() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![step("a", "X=IN", "Y=mid").queued(&a), step("b", "X=mid", "Y=OUT").queued(&b)];
    let rig = build("IN", "OUT", steps, |_| {}, 2).expect("sound");
    let answers: Vec<_> = (0..5).map(|_| rig.ask(vec![tensor("IN", b"1")])).collect();
    assert_eq!(a.len(), 2, "over all requests");
    for done in 1..=5 {
        a.answer(vec![tensor("Y", b"2")]);
        assert_eq!(a.len(), 2.min(5 - done));
        assert_eq!(b.len(), 2.min(done), "each step for itself");
    }
    for _ in 0..5 {
        b.answer(vec![tensor("Y", b"3")]);
        assert!(b.len() <= 2);
    }
    assert!(answers.iter().all(|a| a.only().is_ok()));
}

#[test]
fn one_place_is_enough_for_a_model_used_in_two_steps() {
    let a = Queue::default();
    let steps = vec![
        step("a", "X=IN", "Y=mid").with(decoupled).queued(&a),
        step("a", "X=mid", "Y=OUT").with(decoupled).queued(&a),
    ];
    let rig = build("IN", "OUT", steps, |_| {}, 1).expect("sound");
    let answers = [rig.ask(vec![tensor("IN", b"1")]), rig.ask(vec![tensor("IN", b"2")])];
    while a.len() > 0 {
        let (request, mut responder) = a.take();
        for _ in 0..3 {
            responder.send(Ok(response(vec![tensor(
                "Y",
                request.inputs[0].host().expect("host memory"),
            )])));
            assert!(a.len() <= 2, "one of each step");
        }
        responder.close();
    }
    let all: Vec<_> = ["1", "2"].iter().map(|n| vec![n.to_string(); 9]).collect();
    for (outcomes, expected) in answers.iter().map(|a| a.outcomes()).zip(all) {
        let (last, answers) = outcomes.split_last().expect("an end");
        assert_eq!((answers, last.as_str()), (&expected[..], "-!"));
    }
}

#[test]
fn parked_requests_of_a_failed_request_are_cancelled() {
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![step("a", "X=IN", "Y=one").queued(&a), step("b", "X=IN", "Y=two").queued(&b)];
    let rig = build("IN", "one two", steps, |_| {}, 1).expect("sound");
    let first = rig.ask(vec![tensor("IN", b"1")]);
    let second = rig.ask(vec![tensor("IN", b"1")]);
    let (_, responder) = b.take();
    drop(responder);
    first.only().expect_err("its step b was dropped");
    let (request, responder) = a.take();
    assert!(request.context.cancellation.is_cancelled());
    drop(responder);
    a.answer(vec![tensor("Y", b"2")]);
    b.answer(vec![tensor("Y", b"3")]);
    second.only().expect("the other one goes on");
}

/// Tensors between steps count while they wait for the next model.
#[test]
fn tensors_between_steps_count_against_the_memory_budget() {
    const SIZE: usize = 100_000;
    let budget = MemoryBudget::new(1 << 20);
    let (a, b) = (Queue::default(), Queue::default());
    let steps = vec![step("a", "X=IN", "Y=mid").queued(&a), step("b", "X=mid", "Y=OUT").queued(&b)];
    let rig = build("IN", "OUT", steps, |_| {}, 0).expect("sound");
    let answers: Vec<_> = (0..20)
        .map(|_| {
            let mut context = RequestContext::new();
            context.memory = budget.reservation();
            context.memory.try_grow(1).expect("room");
            rig.submit_in(request(vec![tensor("IN", b"1")]), 1, context)
        })
        .collect();
    assert_eq!(budget.used(), 20, "what the clients sent");
    (0..20).for_each(|_| drop(a.answer(vec![tensor("Y", &[7; SIZE])])));
    assert_eq!(budget.used(), 20 + 20 * SIZE);
    assert!(budget.is_exceeded(), "what is in hand goes on, and new requests are refused");
    (0..20).for_each(|_| drop(b.answer(vec![tensor("Y", b"2")])));
    assert!(answers.iter().all(|a| a.only().is_ok()));
    assert_eq!(budget.used(), 0);
}
