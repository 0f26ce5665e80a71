//! Work that a thread with an async runtime leaves until its tasks have had their turn.
//!
//! A task that would wake another thread for something short does it later on its own thread instead: what the other tasks
//! that are ready bring is there by then, and can be done with it. The thread has to run [`serve`] as one of its tasks;
//! elsewhere there is nobody who does such work, as [`is_served`] tells.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// What does the work that was left.
///
/// It must be short: the tasks of the thread wait meanwhile.
pub trait LateWork: Send + Sync {
    /// Does what was left under this number.
    fn run(&self, number: usize);

    /// What was left under this number will not be done on this thread, which ends.
    fn abandon(&self, number: usize);
}

#[derive(Default)]
struct Left {
    is_served: bool,
    waiting: VecDeque<(Arc<dyn LateWork>, usize)>,
    /// Of the task that serves.
    waker: Option<Waker>,
}

thread_local! {
    static LEFT: RefCell<Left> = RefCell::default();
}

/// Whether somebody does the work that is left on this thread.
pub fn is_served() -> bool {
    LEFT.with_borrow(|left| left.is_served)
}

/// Whether `work` was left on this thread, under whichever number, and is not begun.
pub fn is_left<W: LateWork>(work: &Arc<W>) -> bool {
    let is_same = |(left, _): &(Arc<dyn LateWork>, usize)| {
        std::ptr::addr_eq(Arc::as_ptr(left), Arc::as_ptr(work))
    };
    LEFT.with_borrow(|left| left.waiting.iter().any(is_same))
}

/// Leaves `work` until the tasks that are ready have had their turn. To be asked only where it [is served](is_served).
pub fn run_later(work: Arc<dyn LateWork>, number: usize) {
    LEFT.with_borrow_mut(|left| {
        left.waiting.push_back((work, number));
        if left.waiting.len() == 1
            && let Some(waker) = &left.waker
        {
            waker.wake_by_ref();
        }
    });
}

/// Does what is left on this thread, as long as it is polled. For one task of a thread.
pub async fn serve() {
    let _serving = Serving::begin();
    poll_fn(poll).await
}

/// One piece of work for each poll, so that the sockets of the thread are looked at between them.
fn poll(context: &mut Context<'_>) -> Poll<()> {
    let next = LEFT.with_borrow_mut(|left| {
        if !left.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            left.waker = Some(context.waker().clone());
        }
        left.waiting.pop_front()
    });
    if let Some((work, number)) = next {
        work.run(number);
    }
    if LEFT.with_borrow(|left| !left.waiting.is_empty()) {
        context.waker().wake_by_ref();
    }
    Poll::Pending
}

/// While it lives, the work that is left on this thread is done.
struct Serving;

impl Serving {
    fn begin() -> Self {
        LEFT.with_borrow_mut(|left| left.is_served = true);
        Self
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Left { waiting, .. } = LEFT.take();
        waiting.into_iter().for_each(|(work, number)| work.abandon(number));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;
    use crate::LockExt;

    #[derive(Default)]
    struct Noted {
        ran: Mutex<Vec<usize>>,
        abandoned: Mutex<Vec<usize>>,
    }

    impl LateWork for Noted {
        fn run(&self, number: usize) {
            self.ran.lock_unpoisoned().push(number);
        }

        fn abandon(&self, number: usize) {
            assert!(!is_served());
            self.abandoned.lock_unpoisoned().push(number);
        }
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_left_is_done_in_order_and_abandoned_where_nobody_does_it() {
        let work = Arc::<Noted>::default();
        assert!(!is_served());
        let wakes = Arc::<Wakes>::default();
        let woken = || wakes.0.load(Ordering::Relaxed);
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        {
            let mut serving = pin!(serve());
            assert!(serving.as_mut().poll(&mut context).is_pending());
            assert!(is_served() && !is_left(&work));
            (1..=3).for_each(|number| run_later(work.clone(), number));
            assert!(is_left(&work) && !is_left(&Arc::<Noted>::default()));
            assert_eq!(woken(), 1, "once for all");
            assert!(serving.as_mut().poll(&mut context).is_pending());
            assert_eq!((work.ran.lock_unpoisoned().clone(), woken()), (vec![1], 2));
            assert!(serving.as_mut().poll(&mut context).is_pending());
            run_later(work.clone(), 4);
            assert_eq!(*work.ran.lock_unpoisoned(), [1, 2]);
        }
        assert!(!is_served());
        assert_eq!(*work.abandoned.lock_unpoisoned(), [3, 4]);
        assert_eq!(*work.ran.lock_unpoisoned(), [1, 2]);
    }
}
