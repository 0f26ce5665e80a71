//! Work that a thread with an async runtime delays until its ready tasks have run.
//!
//! A task that would wake another thread for short work does the work later on its own thread instead. By then the other ready
//! tasks have added their work, which can be done together with it. The thread must run [`serve`] as one of its tasks. On other
//! threads nothing does such work, and [`is_served`] returns false.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// Does delayed work.
///
/// The work must be short: the tasks of the thread wait meanwhile.
pub trait LateWork: Send + Sync {
    /// Does the work with this number.
    fn run(&self, number: usize);

    /// The thread ends without doing the work with this number.
    fn abandon(&self, number: usize);
}

#[derive(Default)]
struct LeftWork {
    is_served: bool,
    waiting: VecDeque<(Arc<dyn LateWork>, usize)>,
    /// The waker of the task that serves.
    waker: Option<Waker>,
}

thread_local! {
    static LEFT: RefCell<LeftWork> = RefCell::default();
}

/// Returns whether this thread does delayed work.
pub fn is_served() -> bool {
    LEFT.with_borrow(|left| left.is_served)
}

/// Returns whether `work` waits on this thread, under any number.
pub fn is_left<W: LateWork>(work: &Arc<W>) -> bool {
    let is_same = |(left, _): &(Arc<dyn LateWork>, usize)| {
        std::ptr::addr_eq(Arc::as_ptr(left), Arc::as_ptr(work))
    };
    LEFT.with_borrow(|left| left.waiting.iter().any(is_same))
}

/// Delays `work` until the ready tasks have run. Call it only if the thread [is served](is_served).
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

/// Runs `body`, in which this thread does not count as [served](is_served): work that `body` waits for goes to other threads.
pub fn without<R>(body: impl FnOnce() -> R) -> R {
    let _unserved = Unserved { was_served: set_served(false) };
    body()
}

/// Changes whether this thread is served, and returns whether it was.
fn set_served(is_served: bool) -> bool {
    LEFT.with_borrow_mut(|left| std::mem::replace(&mut left.is_served, is_served))
}

/// Marks this thread as not served while it lives.
struct Unserved {
    was_served: bool,
}

impl Drop for Unserved {
    fn drop(&mut self) {
        set_served(self.was_served);
    }
}

/// Does the delayed work of this thread while it is polled. Only one task of a thread may run it.
pub async fn serve() {
    let _serving = Serving::begin();
    poll_fn(poll).await
}

/// Does one piece of work per poll, so that the thread looks at its sockets in between.
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

/// Marks this thread as served while it lives.
struct Serving;

impl Serving {
    fn begin() -> Self {
        set_served(true);
        Self
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let LeftWork { waiting, .. } = LEFT.take();
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
    fn work_that_is_waited_for_is_not_left_to_the_same_thread() {
        let mut context = Context::from_waker(Waker::noop());
        let mut serving = pin!(serve());
        assert!(serving.as_mut().poll(&mut context).is_pending());
        assert!(!without(is_served));
        assert!(is_served(), "again, afterwards");
        assert!(std::panic::catch_unwind(|| without(|| panic!("so be it"))).is_err());
        assert!(is_served(), "also after a panic");
    }

    #[test]
    fn leftover_work_is_done_in_order_or_abandoned() {
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
