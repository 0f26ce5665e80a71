//! Steps that fail, and graphs that cannot be.

use galatea_backend::testing::prepared;
use galatea_telemetry::FailureReason;
use galatea_types::{Code, Error, RequestContext};

use crate::rig::{Queue, Rig, build, decoupled, ensemble, request, step, tensor};

fn other_failures(rig: &Rig) -> u64 {
    let s = rig.statistics();
    assert_eq!((s.success.count, s.execution_count), (0, 0));
    assert_eq!(s.failures.iter().sum::<u64>(), s.fail.count);
    s.failures[FailureReason::Other as usize]
}

#[test]
fn the_first_error_is_the_answer_and_cancels_the_other_steps() {
    let (a, b, c) = (Queue::default(), Queue::default(), Queue::default());
    let steps = vec![
        step("a", "X=IN", "Y=one").queued(&a),
        step("b", "X=IN", "Y=two").queued(&b),
        step("c", "X=one Y=two", "Z=OUT").queued(&c),
    ];
    let rig = ensemble("IN", "OUT", steps);
    let asked = request(vec![tensor("IN", b"1")]);
    let context = RequestContext::new();
    let cancellation = context.cancellation.clone();
    let answer = rig.submit_in(asked, 1, context);
    let (_, responder) = a.take();
    responder.finish(Err(Error::unavailable("a is tired")));
    let error = answer.only().expect_err("failed");
    assert_eq!(
        (error.code(), error.message()),
        (Code::Unavailable, "in ensemble 'ens', a is tired")
    );
    let (other, responder) = b.take();
    assert!(other.context.cancellation.is_cancelled() && responder.is_closed());
    assert!(!cancellation.is_cancelled(), "the client may have other requests under way");
    drop(responder);
    assert_eq!((c.len(), answer.count(), other_failures(&rig)), (0, 0, 1));
}

#[test]
fn errors_of_nested_ensembles_name_each_ensemble() {
    let failing = step("a", "X=IN", "Y=OUT")
        .doing(|_, responder| responder.finish(Err(Error::internal("boom"))));
    let inner = ensemble("IN", "OUT", vec![failing]);
    let inner = inner.scheduler;
    let through = step("inner", "IN=IN", "OUT=OUT").doing(move |mut asked, responder| {
        use galatea_scheduler::Scheduler as _;
        asked.request.inputs[0].name = "IN".into();
        let request = prepared(asked.request, 1);
        assert!(inner.submit(request, asked.context, responder).is_ok());
    });
    let rig = ensemble("IN", "OUT", vec![through]);
    let error = rig.ask(vec![tensor("IN", b"1")]).only().expect_err("failed");
    assert_eq!(error.message(), "in ensemble 'ens', in ensemble 'ens', boom");
    assert_eq!(other_failures(&rig), 1);
}

#[test]
fn a_step_without_a_response_is_an_error() {
    let silent = step("a", "X=IN", "Y=OUT").doing(|_, responder| responder.close());
    let rig = ensemble("IN", "OUT", vec![silent]);
    let mut asked = request(vec![tensor("IN", b"1")]);
    asked.id = "7".to_owned();
    let error = rig.submit(asked).only().expect_err("failed");
    assert_eq!(error.code(), Code::InvalidArg);
    assert_eq!(
        error.message(),
        "in ensemble 'ens', [request id: 7] unexpected deadlock, at least one output is not set \
         while no more ensemble steps can be made"
    );
}

#[test]
fn a_dropped_step_is_an_error() {
    let lost = step("a", "X=IN", "Y=OUT").doing(|_, responder| drop(responder));
    let rig = ensemble("IN", "OUT", vec![lost]);
    let error = rig.ask(vec![tensor("IN", b"1")]).only().expect_err("failed");
    assert_eq!(error.message(), "in ensemble 'ens', the request was dropped without a response");
}

#[test]
fn a_panic_during_submission_fails_its_request() {
    let panics = step("a", "X=IN", "Y=OUT").doing(|_, _responder| panic!("on purpose"));
    let fine = step("b", "X=IN", "Y=OUT2");
    let rig = ensemble("IN", "OUT OUT2", vec![panics, fine]);
    let answers = crate::rig::Answers::default();
    let ask = || rig.ask(vec![tensor("IN", b"1")]);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
    assert!(result.is_err() && answers.count() == 0);
    assert_eq!(other_failures(&rig), 1, "it was answered all the same");
    let healthy = ensemble("IN", "OUT", vec![step("a", "X=IN", "Y=OUT")]);
    healthy.ask(vec![tensor("IN", b"1")]).only().expect("this thread goes on working");
}

#[test]
fn tensors_of_different_decoupled_models_cannot_be_combined() {
    let steps = vec![
        step("a", "X=IN", "Y=one").with(decoupled),
        step("b", "X=IN", "Y=two").with(decoupled),
        step("c", "X=one Y=two", "Z=OUT"),
    ];
    let error = build("IN", "OUT", steps, |_| {}, 0).err().expect("refused");
    assert_eq!(
        error.message(),
        "in ensemble ens, step of model 'c' receives inputs originated from different decoupled models"
    );
    let steps = vec![step("a", "X=IN", "Y=one").with(decoupled), step("b", "X=IN", "Y=two")];
    let error = build("IN", "one two", steps, |_| {}, 0).err().expect("refused");
    assert!(error.message().contains("step of model 'ens' receives inputs"), "{error}");
}
