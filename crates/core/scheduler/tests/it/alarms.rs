//! Instances that stop working by themselves and are restarted.

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_scheduler::Scheduler as _;
use galatea_test_support::eventually;
use galatea_types::{Code, Error, ManualClock};

use crate::probe::{LONG, Setup, all_succeed, wait};

/// Keeps instances from starting until the test opens it.
#[derive(Clone, Default)]
struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).expect("no panic"));
    }
}

#[test]
fn an_idle_instance_is_restarted_immediately() {
    // Its clock stands still.
    let rig = Setup::direct().by(&ManualClock::new()).start();
    rig.next_made().alarm();
    assert_eq!(rig.next_drop(), "probe_0_0");
    assert_eq!(rig.next_restart(), Duration::ZERO);
    rig.next_made();
    eventually("an instance works", || rig.has_working_instance());
    wait(rig.submit("a")).expect("success");
}

#[test]
fn while_the_only_instance_restarts_requests_wait_and_the_model_is_not_ready() {
    let latch = Latch::default();
    let waiting = latch.clone();
    let rig = Setup::direct()
        .on_create(move |n| {
            if n > 0 {
                waiting.pass();
            }
            Ok(())
        })
        .start();
    let made = rig.next_made();
    assert!(rig.has_working_instance());
    made.alarm();
    assert!(!rig.has_working_instance(), "it counts as not working at once");
    let queued = ["a", "b", "c"].map(|id| rig.submit(id));
    rig.next_drop();
    assert!(!rig.has_working_instance());
    assert_eq!(rig.scheduler.in_flight(), 3);
    latch.open();
    all_succeed(queued);
    assert!(rig.has_working_instance());
}

#[test]
fn an_execution_finishes_before_its_instance_is_dropped() {
    let rig = Setup::direct().gated().start();
    let answer = rig.submit("a");
    rig.next_start();
    let made = rig.next_made();
    made.alarm();
    made.alarm();
    assert!(!rig.has_working_instance());
    assert!(!rig.has_dropped_any());
    let queued = rig.submit("b");
    rig.permit(2);
    wait(answer).expect("it was in the middle of it");
    rig.next_drop();
    rig.next_made();
    wait(queued).expect("success");
    assert_eq!(rig.creations.load(Ordering::SeqCst), 2, "two alarms of one instance are one");
}

#[test]
fn an_alarm_of_a_replaced_instance_is_ignored() {
    let rig = Setup::direct().start();
    let first = rig.next_made();
    first.alarm();
    rig.next_made();
    eventually("an instance works", || rig.has_working_instance());
    first.alarm();
    assert!(rig.has_working_instance());
    wait(rig.submit("a")).expect("success");
    assert_eq!(rig.creations.load(Ordering::SeqCst), 2);
}

#[test]
fn the_batch_of_a_failed_leader_is_taken_by_another_thread() {
    let rig = Setup::dynamic("preferred_batch_size: 4 max_queue_delay_microseconds: 3600000000")
        .instances(2)
        .start();
    let instances = [rig.next_made(), rig.next_made()];
    let first = rig.submit("a");
    // Whichever is the leader, it breaks, and then the other.
    for made in instances {
        made.alarm();
        rig.next_drop();
        rig.next_made();
    }
    eventually("an instance works", || rig.has_working_instance());
    let rest = ["b", "c", "d"].map(|id| rig.submit(id));
    assert_eq!(rig.next_start(), ["a", "b", "c", "d"]);
    wait(first).expect("success");
    all_succeed(rest);
}

#[test]
fn other_instances_keep_working_after_an_alarm() {
    let latch = Latch::default();
    let waiting = latch.clone();
    let rig = Setup::direct()
        .instances(3)
        .on_create(move |n| {
            if n > 2 {
                waiting.pass();
            }
            Ok(())
        })
        .start();
    let made = [rig.next_made(), rig.next_made(), rig.next_made()];
    made[0].alarm();
    made[1].alarm();
    assert!(rig.has_working_instance());
    for _ in 0..50 {
        wait(rig.submit("a")).expect("success");
    }
    made[2].alarm();
    assert!(!rig.has_working_instance());
    let queued = rig.submit("b");
    latch.open();
    wait(queued).expect("success");
}

#[test]
fn requests_fail_with_the_reason_while_restarts_fail() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let flag = is_broken.clone();
    let rig = Setup::direct()
        .gated()
        .on_create(move |_| match flag.load(Ordering::SeqCst) {
            true => Err(Error::internal("no such file")),
            false => Ok(()),
        })
        .start();
    let executing = rig.submit("a");
    rig.next_start();
    let queued = rig.submit("b");
    is_broken.store(true, Ordering::SeqCst);
    rig.next_made().alarm();
    rig.permit(1);
    wait(executing).expect("it finishes");
    for error in [wait(queued), wait(rig.submit("c"))].map(|a| a.expect_err("failed")) {
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().ends_with("has no working instance: no such file"), "{error}");
    }
    assert!(!rig.has_working_instance());
    is_broken.store(false, Ordering::SeqCst);
    eventually("an instance works", || rig.has_working_instance());
    rig.permit(1);
    wait(rig.submit("d")).expect("success");
}

#[test]
fn an_instance_that_keeps_failing_is_restarted_less_often() {
    let clock = ManualClock::new();
    let rig = Setup::direct().by(&clock).start();
    rig.breaks_on_start.store(true, Ordering::SeqCst);
    rig.next_made().alarm();
    for expected in [0, 100, 200, 400] {
        let wait = rig.next_restart();
        assert_eq!(wait.as_millis(), expected);
        clock.advance(wait);
        rig.next_made();
    }
    assert!(!rig.has_working_instance());
    rig.breaks_on_start.store(false, Ordering::SeqCst);
    clock.advance(rig.next_restart());
    eventually("an instance works", || rig.has_working_instance());
    wait(rig.submit("a")).expect("success");
}

#[test]
fn closing_ends_an_instance_that_keeps_failing() {
    let clock = ManualClock::new();
    let rig = Setup::direct().by(&clock).start();
    rig.breaks_on_start.store(true, Ordering::SeqCst);
    rig.next_made().alarm();
    for _ in 0..3 {
        clock.advance(rig.next_restart());
        rig.next_made();
    }
    // The clock stands still from now on, so the backoff does not delay it.
    assert!(rig.scheduler.drain(clock.now() + LONG));
}

#[test]
fn an_alarm_while_draining_fails_no_queued_request() {
    let rig = Setup::direct().gated().start();
    let answers = ["a", "b", "c"].map(|id| rig.submit(id));
    rig.next_start();
    rig.scheduler.close();
    rig.next_made().alarm();
    rig.permit(3);
    all_succeed(answers);
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    assert_eq!(rig.creations.load(Ordering::SeqCst), 2);
}

#[test]
fn an_alarm_after_closing_with_an_empty_queue_restarts_nothing() {
    let rig = Setup::direct().gated().start();
    let answer = rig.submit("a");
    rig.next_start();
    rig.scheduler.close();
    let made = rig.next_made();
    made.alarm();
    rig.permit(1);
    wait(answer).expect("success");
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    assert_eq!(rig.creations.load(Ordering::SeqCst), 1);
    made.alarm();
}

#[test]
fn an_alarm_after_the_scheduler_is_dropped_does_nothing() {
    let rig = Setup::direct().start();
    let made = rig.next_made();
    drop(rig);
    made.alarm();
}

/// Submitters, and a thread that raises alarms of old and new instances all the time.
fn stress(setup: Setup, closes: bool) {
    const REQUESTS: usize = 300;
    const SUBMITTERS: usize = 4;
    let rig = setup.start();
    let finished = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (rig, finished) = (&rig, &finished);
        for _ in 0..SUBMITTERS {
            scope.spawn(move || {
                for n in 0..REQUESTS {
                    let answer = wait(rig.submit(if n % 50 == 7 { "panic" } else { "a" }));
                    if let Err(error) = answer {
                        let known = [Code::Internal, Code::Unavailable];
                        assert!(known.contains(&error.code()), "{error}");
                    }
                }
                finished.fetch_add(1, Ordering::SeqCst);
            });
        }
        scope.spawn(move || {
            let mut instances = Vec::new();
            while finished.load(Ordering::SeqCst) < SUBMITTERS {
                if instances.len() < 40 {
                    instances.extend(rig.try_made());
                }
                instances.iter().for_each(crate::probe::Made::alarm);
                if closes && rig.statistics.snapshot().success.count > 200 {
                    rig.scheduler.close();
                }
                thread::yield_now();
            }
        });
    });
    assert!(rig.scheduler.drain(Instant::now() + LONG));
    let s = rig.statistics.snapshot();
    assert_eq!(s.success.count + s.fail.count, (REQUESTS * SUBMITTERS) as u64);
    assert_eq!((s.pending, rig.scheduler.in_flight()), (0, 0));
}

#[test]
fn alarms_lose_no_request() {
    stress(Setup::direct().instances(3), false);
}

#[test]
fn alarms_lose_no_batch() {
    let setup = Setup::dynamic(
        "preferred_batch_size: 3 max_queue_delay_microseconds: 300 preserve_ordering: true",
    );
    stress(setup.instances(2), false);
}

#[test]
fn alarms_while_closing_lose_no_request() {
    stress(Setup::direct().instances(2), true);
}
