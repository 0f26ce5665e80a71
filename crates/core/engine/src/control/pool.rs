//! The threads that run control operations.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    task::{Context, Poll},
    thread,
    time::Duration,
};

use galatea_types::{CondvarExt, Error, LockExt};
use tokio::sync::oneshot;

use super::queue::{Class, Job, Limit, Limits, Operation, Outcome, Queue};

/// The time that a thread waits for work before it ends.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// A limited number of threads, started when they are needed. They end after some idle time, and when this value is dropped.
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when there is work, or the pool is dropped.
    changed: Condvar,
    thread_limit: usize,
}

struct State {
    queue: Queue,
    thread_count: usize,
    idle_count: usize,
    refuses_loads: bool,
    is_dropped: bool,
}

impl State {
    /// Takes jobs that wait although there is no thread, because none can be started.
    fn take_stranded(&mut self) -> Vec<Job> {
        match self.thread_count {
            0 => self.queue.take(|_| true),
            _ => Vec::new(),
        }
    }
}

impl Pool {
    pub fn new(limits: Limits) -> Self {
        let state = State {
            queue: Queue::new(limits),
            thread_count: 0,
            idle_count: 0,
            refuses_loads: false,
            is_dropped: false,
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            thread_limit: limits.iter().map(|limit| limit.running).sum(),
        }))
    }

    /// Queues an operation. It does not begin if the future is dropped before, unless others wait for it too.
    pub fn submit(
        &self,
        operation: Operation,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> PendingOperation {
        let (caller, answer) = oneshot::channel();
        let job = Job { operation, work: Box::new(work), callers: vec![caller] };
        self.0.submit(job);
        PendingOperation { shared: self.0.clone(), answer, is_answered: false }
    }

    /// Returns the number of running operations and waiting callers of each class.
    pub fn counts(&self) -> [(Class, Limit); Class::ALL.len()] {
        let state = self.0.lock();
        Class::ALL.map(|class| (class, state.queue.counts(class)))
    }

    /// Refuses the waiting loads, and later ones.
    pub fn refuse_loads(&self) {
        self.0.lock().refuses_loads = true;
        let refused = self.0.take(|queue| queue.take(|job| job.operation.class() == Class::Load));
        refused.into_iter().for_each(|job| job.refuse(exiting()));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_dropped = true;
        let refused = self.0.take(|queue| queue.take(|_| true));
        self.0.changed.notify_all();
        refused.into_iter().for_each(|job| job.refuse(exiting()));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock_unpoisoned()
    }

    fn submit(self: &Arc<Self>, job: Job) {
        let mut state = self.lock();
        if state.is_dropped || (state.refuses_loads && job.operation.class() == Class::Load) {
            drop(state);
            return job.refuse(exiting());
        }
        let pushed = state.queue.push(job);
        self.provide_thread(&mut state);
        let stranded = state.take_stranded();
        drop(state);
        if let Err((job, error)) = pushed {
            job.refuse(error);
        }
        let no_thread = "no thread can be started for the operation: try again later";
        stranded.into_iter().for_each(|job| job.refuse(Error::unavailable(no_thread)));
    }

    /// Takes jobs out of the queue, after which another one may be able to run.
    fn take(self: &Arc<Self>, jobs: impl FnOnce(&mut Queue) -> Vec<Job>) -> Vec<Job> {
        let mut state = self.lock();
        let taken = jobs(&mut state.queue);
        self.provide_thread(&mut state);
        taken
    }

    /// Wakes or starts a thread if there is a job that could run.
    fn provide_thread(self: &Arc<Self>, state: &mut State) {
        if !state.queue.has_next() {
            return;
        }
        if state.idle_count > 0 {
            self.changed.notify_one();
        } else if state.thread_count < self.thread_limit {
            let shared = self.clone();
            let thread = thread::Builder::new().name("control".to_owned());
            match thread.spawn(move || shared.serve()) {
                Ok(_) => state.thread_count += 1,
                Err(error) => log::error!("failed to start a control thread: {error}"),
            }
        }
    }

    fn serve(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.is_dropped {
            let Some(job) = state.queue.start_next() else {
                state.idle_count += 1;
                let (woken, timed_out) = self.changed.wait_timeout_unpoisoned(state, IDLE_TIME);
                state = woken;
                state.idle_count -= 1;
                if timed_out && !state.queue.has_next() {
                    break;
                }
                continue;
            };
            // One signal may have been for two jobs: the second gets a thread now.
            self.provide_thread(&mut state);
            drop(state);
            self.run(job);
            state = self.lock();
        }
        state.thread_count -= 1;
    }

    fn run(&self, job: Job) {
        let Job { operation, work, callers } = job;
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()));
        // Before the answer, so that a caller that asks again at once does not wait for this operation.
        self.lock().queue.finished(&operation);
        Job::answer(callers, &outcome);
    }
}

/// A future of the result of an operation. If it is dropped before the operation begins, the operation does not begin.
pub(super) struct PendingOperation {
    shared: Arc<Shared>,
    answer: oneshot::Receiver<Outcome>,
    is_answered: bool,
}

impl Future for PendingOperation {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let answer = Pin::new(&mut self.answer).poll(context);
        self.is_answered = answer.is_ready();
        answer.map(|answer| answer.unwrap_or_else(|_| Err(panicked())))
    }
}

impl Drop for PendingOperation {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.answer.close();
        // Dropped outside of the lock, because the files of a load may be large.
        drop(self.shared.take(Queue::take_unwanted));
    }
}

fn exiting() -> Error {
    Error::unavailable("Server exiting")
}

/// Returns the error of an operation that ended without a result.
pub(super) fn panicked() -> Error {
    Error::internal("the operation ended without a result")
}
