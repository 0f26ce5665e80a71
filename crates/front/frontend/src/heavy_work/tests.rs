//! The bound of the queue, the panic wall, and work that nobody wants any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use galatea_types::{Code, Error};

use super::{HeavyWork, HeavyWorkError};

#[tokio::test(flavor = "current_thread")]
async fn the_work_runs_on_another_thread_of_lower_priority() {
    let pool = HeavyWork::default();
    let here = thread::current().id();
    let niceness = || rustix::process::getpriority_process(None).expect("readable");
    let (there, lowered) =
        pool.run(move || (thread::current().id(), niceness())).await.expect("done");
    assert_ne!(there, here);
    assert!(lowered > niceness(), "{lowered}");
    assert_eq!(pool.run_sized(1, || thread::current().id()).await, Ok(here));
    assert_ne!(pool.run_sized(1 << 20, || thread::current().id()).await, Ok(here));
}

#[tokio::test(flavor = "current_thread")]
async fn a_panic_fails_only_its_own_work() {
    let pool = HeavyWork::new(1, 4);
    let panicked: Result<(), _> = pool.run(|| panic!("asked for")).await;
    assert_eq!(panicked, Err(HeavyWorkError::Panicked));
    assert_eq!(pool.run(|| 7).await, Ok(7));
}

#[tokio::test(flavor = "current_thread")]
async fn work_over_the_queue_limit_is_refused_and_abandoned_work_is_skipped() {
    let pool = HeavyWork::new(1, 2);
    let (begun, has_begun) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let first = pool.run(move || {
        begun.send(()).expect("somebody waits");
        gone.recv().is_ok()
    });
    has_begun.recv().expect("begins");
    let done = Arc::new(AtomicUsize::new(0));
    let count = |done: &Arc<AtomicUsize>| {
        let done = done.clone();
        move || done.fetch_add(1, Ordering::Relaxed)
    };
    let unwanted = pool.run(count(&done));
    let second = pool.run(count(&done));
    let refused = pool.run(count(&done)).await.expect_err("full");
    assert_eq!(refused, HeavyWorkError::Full { waiting: 2 });
    assert_eq!(Error::from(refused).code(), Code::Exhausted);
    assert_eq!(pool.counts(), (2, 1));
    drop(unwanted);
    go.send(()).expect("it waits");
    assert_eq!((first.await, second.await), (Ok(true), Ok(0)));
    assert_eq!(done.load(Ordering::Relaxed), 1);
}
