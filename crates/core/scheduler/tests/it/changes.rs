//! Instances that are added and removed while requests run.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use galatea_backend::{InstanceSpec, testing::instance_spec};
use galatea_scheduler::Scheduler as _;
use galatea_test_support::eventually;
use galatea_types::Error;

use crate::probe::{Rig, Setup, all_succeed, wait};

fn added(indices: impl IntoIterator<Item = usize>) -> Vec<InstanceSpec> {
    indices.into_iter().map(|index| instance_spec("probe", index)).collect()
}

fn names(rig: &Rig) -> Vec<String> {
    rig.scheduler.instances().into_iter().map(|spec| spec.name).collect()
}

#[test]
fn a_new_instance_executes_while_the_others_are_busy() {
    let rig = Setup::direct().gated().start();
    let first = rig.submit("a");
    assert_eq!(rig.next_start(), ["a"]);
    let waiting = rig.submit("b");
    rig.scheduler.change_instances(added([1]), &[]).expect("it starts");
    assert_eq!(rig.next_start(), ["b"], "what waited is the new one's first");
    rig.permit(2);
    all_succeed([first, waiting]);
    assert_eq!(names(&rig), ["probe_0_0", "probe_0_1"]);
}

#[test]
fn instances_start_in_parallel() {
    let both = Arc::new(Barrier::new(2));
    let meeting = both.clone();
    // Whoever started them one after the other would wait here for ever.
    let setup = Setup::direct().instances(2).on_create(move |_| {
        meeting.wait();
        Ok(())
    });
    let rig = setup.start();
    rig.scheduler.change_instances(added([2, 3]), &[]).expect("they start");
    assert_eq!(names(&rig).len(), 4);
}

#[test]
fn instances_start_one_by_one_if_configured() {
    let starting = Arc::new(AtomicUsize::new(0));
    let counted = starting.clone();
    let setup = Setup::direct().instances(2).one_by_one().on_create(move |number| {
        assert_eq!(counted.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
        thread::yield_now();
        counted.fetch_sub(1, Ordering::SeqCst);
        if number == 4 { Err(Error::internal("no fifth one")) } else { Ok(()) }
    });
    let rig = setup.start();
    rig.scheduler.change_instances(added([2, 3]), &[]).expect("they start");
    let changed = rig.scheduler.change_instances(added([4, 5]), &[]);
    assert_eq!(changed.expect_err("one fails").message(), "no fifth one");
    assert_eq!((names(&rig).len(), rig.creations.load(Ordering::SeqCst)), (4, 5));
}

#[test]
fn a_removed_instance_finishes_its_requests_and_takes_no_more() {
    let rig = Setup::direct().gated().instances(2).start();
    let answers = [rig.submit("a"), rig.submit("b")];
    rig.next_start();
    rig.next_start();
    let waiting = [rig.submit("c"), rig.submit("d")];
    thread::scope(|scope| {
        let change = scope.spawn(|| rig.scheduler.change_instances(Vec::new(), &[0]));
        eventually("one instance is left", || names(&rig) == ["probe_0_1"]);
        assert!(!change.is_finished() && !rig.has_dropped_any(), "its request is executing");
        rig.permit(4);
        all_succeed(answers);
        all_succeed(waiting);
        change.join().expect("no panic").expect("nothing fails");
    });
    assert_eq!(rig.next_drop(), "probe_0_0");
    eventually("nothing is in flight", || rig.scheduler.in_flight() == 0);
    rig.permit(1);
    all_succeed([rig.submit("e")]);
}

#[test]
fn a_failed_start_of_a_new_instance_changes_nothing() {
    let failing = |number| match number {
        2 => Err(Error::internal("no third one")),
        _ => Ok(()),
    };
    let rig = Setup::direct().on_create(failing).start();
    let changed = rig.scheduler.change_instances(added([1, 2]), &[0]);
    assert_eq!(changed.expect_err("one fails").message(), "no third one");
    assert!(["probe_0_1", "probe_0_2"].contains(&&*rig.next_drop()), "the other new one");
    assert_eq!(names(&rig), ["probe_0_0"]);
    all_succeed([rig.submit("a")]);
    assert!(!rig.has_dropped_any());
}

#[test]
fn an_instance_is_removed_after_its_streams_have_ended() {
    let rig = Setup::direct().decoupled().start();
    let mut stream = rig.submit_stream("stream");
    let mut sender = rig.next_stream();
    thread::scope(|scope| {
        let change = scope.spawn(|| rig.scheduler.change_instances(added([1]), &[0]));
        eventually("one instance is left", || names(&rig) == ["probe_0_1"]);
        all_succeed([rig.submit("a")]);
        sender.send(Ok(Default::default()));
        assert!(stream.blocking_recv().is_some_and(|response| !response.is_final));
        assert!(!change.is_finished() && !rig.has_dropped_any());
        sender.finish(None);
        assert!(stream.blocking_recv().is_some_and(|response| response.is_final));
        change.join().expect("no panic").expect("nothing fails");
    });
    assert_eq!(rig.next_drop(), "probe_0_0");
}

#[test]
fn instances_that_cannot_be_restarted_are_replaced() {
    let works = Arc::new(AtomicBool::new(true));
    let is_possible = works.clone();
    let rig = Setup::direct()
        .on_create(move |_| match is_possible.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(Error::internal("not now")),
        })
        .start();
    works.store(false, Ordering::SeqCst);
    rig.next_made().alarm();
    eventually("an instance is made anew", || rig.creations.load(Ordering::SeqCst) > 1);
    eventually("requests are refused", || wait(rig.submit("refused")).is_err());
    works.store(true, Ordering::SeqCst);
    // The old one waits before its next try: it does not have to.
    rig.scheduler.change_instances(added([1]), &[0]).expect("it starts");
    assert!(rig.has_working_instance());
    all_succeed([rig.submit("a")]);
    assert_eq!(names(&rig), ["probe_0_1"]);
}

#[test]
fn no_request_is_lost_while_instances_change() {
    let rig = Setup::dynamic("").instances(2).start();
    thread::scope(|scope| {
        let askers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| all_succeed((0..300).map(|_| rig.submit("a")))))
            .collect();
        for turn in (0..40).step_by(2) {
            let (new, old) = (added([turn + 2, turn + 3]), [turn, turn + 1]);
            rig.scheduler.change_instances(new, &old).expect("they start");
            assert_eq!(rig.scheduler.instances().len(), 2);
        }
        askers.into_iter().for_each(|asker| asker.join().expect("no request fails"));
    });
    assert_eq!(rig.statistics.snapshot().success.count, 600);
    assert_eq!(rig.creations.load(Ordering::SeqCst), 42);
}
