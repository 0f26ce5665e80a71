//! `max_inflight_requests`: how many requests of a step may be in flight over all requests to the ensemble.

use crate::rig::{Queue, build, decoupled, response, step, tensor};

#[test]
fn a_step_has_no_more_under_way_than_allowed() {
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
fn one_place_is_enough_for_a_model_that_follows_itself() {
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
