//! The wake-ups of the parts of a connection's task.
//!
//! HTTP/2, the keep-alive timer and every open call are parts of the one task of their connection. Each is polled with
//! its own waker, so that a call whose answer is ready is polled alone. A part that another wakes while the task runs
//! costs no further turn of the runtime; a queued response wakes HTTP/2, for example.

use std::{
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use galatea_types::LockExt;

/// The wake-ups of the parts of one task.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The places of the parts that were woken since the last check, each once.
    woken: Vec<usize>,
    /// The waker of the task while it sleeps. A running task checks again before it sleeps.
    task: Option<Waker>,
}

impl Wakeups {
    /// Moves the woken places into `woken`, which must be empty. Returns `false` if there are none; then the first part
    /// that is woken wakes the task.
    pub fn take_or_sleep(&self, woken: &mut Vec<usize>, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock_unpoisoned();
        if state.woken.is_empty() {
            state.task = Some(cx.waker().clone());
            return false;
        }
        mem::swap(woken, &mut state.woken);
        true
    }
}

#[derive(Debug)]
pub(crate) struct Part {
    wake_ups: Arc<Wakeups>,
    /// The place by which the task knows the part.
    place: usize,
    is_woken: AtomicBool,
}

impl Part {
    /// Returns a part that was not polled yet.
    pub fn new(wake_ups: &Arc<Wakeups>, place: usize) -> Arc<Self> {
        Arc::new(Self { wake_ups: wake_ups.clone(), place, is_woken: AtomicBool::new(false) })
    }

    pub fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Call this before the poll: any wake-up from now on counts as a new one.
    pub fn begin_poll(&self) {
        self.is_woken.store(false, Ordering::Release);
    }
}

impl Wake for Part {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = {
            let mut state = self.wake_ups.state.lock_unpoisoned();
            state.woken.push(self.place);
            state.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct CountedWake(AtomicUsize);

    impl Wake for CountedWake {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_sleeping_task_is_woken_once_and_sees_each_part_once() {
        let (wake_ups, task) = (Arc::<Wakeups>::default(), Arc::<CountedWake>::default());
        let waker = Waker::from(task.clone());
        let cx = Context::from_waker(&waker);
        let parts = [3, 5].map(|place| Part::new(&wake_ups, place));
        let wakers = parts.each_ref().map(|part| Waker::from(part.clone()));
        let mut woken = Vec::new();
        assert!(!wake_ups.take_or_sleep(&mut woken, &cx));
        for waker in [&wakers[1], &wakers[0], &wakers[1]] {
            waker.wake_by_ref();
        }
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(wake_ups.take_or_sleep(&mut woken, &cx));
        assert_eq!(woken, [5, 3]);
        woken.clear();
        parts[1].begin_poll();
        wakers[1].wake_by_ref();
        wakers[0].wake_by_ref();
        assert_eq!(task.0.load(Ordering::Relaxed), 1, "it runs");
        assert!(wake_ups.take_or_sleep(&mut woken, &cx));
        assert_eq!(woken, [5], "the other was woken before, and not polled since");
    }
}
