//! Which requests are executed together, in which order, and who is woken for them.

use galatea_scheduler::Scheduler as _;
use std::time::Duration;

use galatea_backend::testing::{adjusted, model_config};
use galatea_types::{ManualClock, PreparedRequest};
use tokio::sync::oneshot::error::TryRecvError;

use crate::probe::{Rig, Setup, all_succeed, named, sized, wait};

/// A delay no test lives to see the end of: whatever is executed was not waited for.
const ENDLESS: &str = "max_queue_delay_microseconds: 3600000000";

fn batches_of(rig: &Rig, requests: Vec<PreparedRequest>) -> Vec<Vec<String>> {
    let answers: Vec<_> = requests.into_iter().map(|r| rig.submit_request(r)).collect();
    let count = answers.len();
    let mut batches = Vec::new();
    while batches.iter().map(Vec::len).sum::<usize>() < count {
        batches.push(rig.next_start());
    }
    all_succeed(answers);
    batches
}

#[test]
fn the_default_scheduler_does_not_batch() {
    let rig = Setup::direct().hold(3).start();
    let batches = batches_of(&rig, ["a", "b", "c"].map(|id| named(id, 2)).into());
    assert_eq!(batches, [["a"], ["b"], ["c"]]);
}

#[test]
fn a_model_without_batch_dimension_is_not_batched() {
    let config = model_config(
        "name: 'probe' backend: 'probe' dynamic_batching {}
         input { name: 'IN' data_type: TYPE_FP32 dims: -1 }",
    );
    let setup = Setup { config, ..Setup::direct().hold(2) };
    assert_eq!(batches_of(&setup.start(), vec![named("a", 1), named("b", 1)]), [["a"], ["b"]]);
}

#[test]
fn variable_inputs_of_different_shapes_are_not_batched() {
    let requests = || vec![sized("a", 1, 4), sized("b", 2, 4), sized("c", 1, 5)];
    let rig = Setup::dynamic("").hold(3).start();
    assert_eq!(batches_of(&rig, requests()), [vec!["a", "b"], vec!["c"]]);

    let ragged = Setup::dynamic("").hold(3).changed(|raw| raw.input[0].allow_ragged_batch = true);
    assert_eq!(batches_of(&ragged.start(), requests()), [["a", "b", "c"]]);
}

#[test]
fn requests_with_other_optional_inputs_are_not_batched() {
    let optional = "input { name: 'MASK' data_type: TYPE_FP32 dims: 4 optional: true }";
    let setup = Setup::of(&format!("dynamic_batching {{}} {optional}")).hold(3);
    let with_mask = adjusted(named("c", 1), |request| {
        let mut mask = request.inputs[0].clone();
        mask.name = "MASK".into();
        request.inputs.push(mask);
    });
    let batches = batches_of(&setup.start(), vec![named("a", 1), named("b", 1), with_mask]);
    assert_eq!(batches, [vec!["a", "b"], vec!["c"]]);
}

#[test]
fn requests_that_arrive_during_an_execution_form_one_batch() {
    let rig = Setup::dynamic("").gated().start();
    let mut answers = vec![rig.submit("first")];
    rig.next_start();
    answers.extend(["a", "b", "c"].map(|id| rig.submit(id)));
    rig.permit(2);
    assert_eq!(rig.next_start(), ["a", "b", "c"]);
    all_succeed(answers);
}

#[test]
fn reaching_the_preferred_size_ends_the_delay() {
    for instances in [1, 3] {
        let rig = Setup::dynamic(&format!("preferred_batch_size: 4 {ENDLESS}"))
            .instances(instances)
            .start();
        let batches = batches_of(&rig, vec![named("a", 1), named("b", 2), named("c", 1)]);
        assert_eq!(batches, [["a", "b", "c"]], "{instances} instances");
    }
}

#[test]
fn a_request_that_cannot_join_ends_the_delay_of_the_previous_batch() {
    let rig = Setup::dynamic(ENDLESS).instances(2).start();
    let first = [rig.submit_request(sized("a", 1, 4)), rig.submit_request(sized("b", 1, 4))];
    let other = rig.submit_request(sized("c", 1, 5));
    assert_eq!(rig.next_start(), ["a", "b"]);
    all_succeed(first);
    // The other one now waits for company of its own; closing ends that.
    rig.scheduler.close();
    assert_eq!(rig.next_start(), ["c"]);
    wait(other).expect("success");
}

#[test]
fn the_delay_ends_after_its_time() {
    let clock = ManualClock::new();
    let rig = Setup::dynamic("max_queue_delay_microseconds: 5000").by(&clock).start();
    let answer = rig.submit("a");
    clock.advance(Duration::from_millis(5) - Duration::from_nanos(1));
    assert_eq!(rig.statistics.snapshot().pending, 1, "the delay is not over");
    clock.advance(Duration::from_nanos(1));
    wait(answer).expect("success");
    assert_eq!(rig.statistics.snapshot().queue.ns, 5_000_000);
}

#[test]
fn a_lone_caller_has_no_delay_with_a_learned_delay() {
    let auto = "dynamic_batching { max_queue_delay_microseconds: 3600000000 }
                parameters { key: 'batch_delay' value { string_value: 'auto' } }";
    let rig = Setup::of(auto).start();
    for _ in 0..50 {
        wait(rig.submit("again")).expect("success");
        assert_eq!(rig.next_start(), ["again"]);
    }
    assert_eq!(rig.scheduler.learned_batch_delay(), Some(Duration::ZERO));
    assert_eq!(Setup::dynamic("").start().scheduler.learned_batch_delay(), None);
}

/// Each execution takes five milliseconds for any batch size, so simultaneous callers share it.
#[test]
fn callers_are_batched_with_a_learned_delay() {
    let auto = "dynamic_batching {}
                parameters { key: 'batch_delay' value { string_value: 'auto' } }";
    let clock = ManualClock::new();
    let rig = Setup::of(auto).by(&clock).gated().start();
    let mut sizes = Vec::new();
    let mut answers: Vec<_> = ["a", "b", "c"].map(|id| rig.submit(id)).into();
    while sizes.len() < 40 {
        // All callers have asked. Whatever a batch waits for yet is over then.
        clock.advance(Duration::from_millis(1));
        let started = rig.next_start();
        clock.advance(Duration::from_millis(5));
        sizes.push(started.len());
        rig.permit(1);
        let (answered, waiting) =
            answers.into_iter().enumerate().partition::<Vec<_>, _>(|(n, _)| *n < started.len());
        answered.into_iter().for_each(|(_, answer)| drop(wait(answer).expect("success")));
        answers = waiting.into_iter().map(|(_, answer)| answer).collect();
        answers.extend(started.iter().map(|id| rig.submit(id)));
    }
    rig.permit(40);
    clock.advance(Duration::from_secs(1));
    all_succeed(answers);
    let together = sizes[10..].iter().filter(|&&size| size == 3).count();
    assert!(together >= 20, "{sizes:?}");
    assert!(rig.scheduler.learned_batch_delay().is_some());
}

#[test]
fn higher_priorities_go_first() {
    let rig =
        Setup::dynamic("preferred_batch_size: 1 priority_levels: 3 default_priority_level: 2")
            .gated()
            .start();
    let mut answers = vec![rig.submit("first")];
    rig.next_start();
    for (id, priority) in [("low", 3), ("default", 0), ("unknown", 9), ("high", 1)] {
        answers.push(rig.submit_request(adjusted(named(id, 1), |r| r.priority = priority)));
    }
    rig.permit(5);
    let order: Vec<_> = (0..4).flat_map(|_| rig.next_start()).collect();
    assert_eq!(order, ["high", "default", "unknown", "low"]);
    all_succeed(answers);
}

#[test]
fn preserved_ordering_holds_back_responses_until_earlier_ones_are_sent() {
    let rig = Setup::dynamic("preferred_batch_size: 1 preserve_ordering: true")
        .instances(2)
        .gated()
        .start();
    let mut first = rig.submit("first");
    assert_eq!(rig.next_start(), ["first"]);
    let mut second = rig.submit("second");
    assert_eq!(rig.next_start(), ["second"]);
    let third = rig.submit("third");
    rig.release("second");
    // Its instance is free for the third only when it is done with the second.
    assert_eq!(rig.next_start(), ["third"]);
    assert!(matches!(first.try_recv(), Err(TryRecvError::Empty)));
    assert!(matches!(second.try_recv(), Err(TryRecvError::Empty)));
    rig.release("first");
    assert_eq!(wait(first).expect("success").id, "first");
    assert_eq!(wait(second).expect("success").id, "second");
    rig.release("third");
    all_succeed([third]);
}
