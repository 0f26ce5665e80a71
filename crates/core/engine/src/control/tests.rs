//! The pool by itself: order, bounds, panics.

use std::{
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    thread,
};

use galatea_types::Code;

use super::*;

const LIMIT: Limit = Limit { running: 1, waiting: 3 };

fn pool() -> Pool {
    Pool::new([LIMIT; 4])
}

/// An operation that has begun and ends when the sender is used or dropped.
fn occupy(pool: &Pool, operation: Operation) -> (pool::PendingOperation, mpsc::Sender<()>) {
    let (release, held) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let pending = pool.submit(operation, move || {
        begin.send(()).expect("the test waits");
        let _ = held.recv();
        Ok(true)
    });
    begun.recv().expect("it begins");
    (pending, release)
}

fn load(model: &str) -> Operation {
    Operation::Load { model: model.to_owned(), has_overrides: true }
}

fn unload(model: &str) -> Operation {
    Operation::Unload { model: model.to_owned(), with_dependents: false }
}

fn wait(mut pending: pool::PendingOperation) -> Result<bool> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut pending).poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::yield_now(),
        }
    }
}

#[test]
fn operations_over_the_limit_are_refused_by_name() {
    let pool = pool();
    let (first, release) = occupy(&pool, Operation::Query);
    let mut waiting: Vec<_> = (0..3).map(|_| pool.submit(Operation::Query, || Ok(true))).collect();
    let error = wait(pool.submit(Operation::Query, || Ok(true))).expect_err("full");
    assert_eq!(error.code(), Code::Exhausted);
    assert_eq!(error.message(), "too many queries are waiting, the limit is 3: try again later");
    // Who goes makes room.
    drop(waiting.pop());
    let late = pool.submit(Operation::Query, || Ok(false));
    drop(release);
    assert!(wait(first).expect("done"));
    assert!(waiting.into_iter().map(wait).all(|done| done.expect("done")));
    assert!(!wait(late).expect("done"));
}

#[test]
fn operations_on_one_model_keep_their_order_across_classes() {
    let pool = pool();
    let (other, release) = occupy(&pool, load("a"));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let order = order.clone();
        move || {
            order.lock().expect("no panic").push(what);
            Ok(true)
        }
    };
    let waiting = [
        // Waits for the thread of loads; the unload must wait for it although its own thread is free.
        pool.submit(load("b"), note("load b")),
        pool.submit(unload("b"), note("unload b")),
    ];
    assert!(wait(pool.submit(unload("c"), note("unload c"))).expect("done"));
    drop(release);
    wait(other).expect("done");
    for pending in waiting {
        wait(pending).expect("done");
    }
    assert_eq!(*order.lock().expect("no panic"), ["unload c", "load b", "unload b"]);
}

#[test]
fn a_panic_fails_only_its_operation() {
    let pool = pool();
    let error = wait(pool.submit(load("a"), || panic!("expected by the test"))).expect_err("ended");
    assert_eq!(error.message(), "the operation ended without a result");
    assert!(wait(pool.submit(load("a"), || Ok(true))).expect("the model is free again"));
}

#[test]
fn waiting_operations_are_answered_when_the_pool_is_dropped() {
    let pool = pool();
    let (first, release) = occupy(&pool, load("a"));
    let waiting = pool.submit(load("a"), || Ok(true));
    drop(pool);
    assert_eq!(wait(waiting).expect_err("refused").message(), "Server exiting");
    drop(release);
    wait(first).expect("what has begun is finished");
}
