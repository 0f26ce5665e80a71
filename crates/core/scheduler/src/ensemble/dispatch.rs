//! Steps on their way to their models, one list per thread.
//!
//! A model may respond while a request is being submitted to it. Its response then only adds to the list, and
//! the submitting thread works through it: however long a chain of immediate responses is, the stack does not grow, and
//! no lock is held.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::Arc,
};

use galatea_backend::InferTarget;
use galatea_types::{InferRequest, RequestContext, Responder};

use super::limiter::Limiter;

/// Where the requests of a step go.
#[derive(Clone)]
pub(super) struct StepTarget {
    pub model: Arc<dyn InferTarget>,
    pub limiter: Option<Arc<Limiter<Submission>>>,
}

/// A request of one step, with its responder.
pub(super) struct Submission {
    pub target: StepTarget,
    pub request: InferRequest,
    pub context: RequestContext,
    pub responder: Responder,
}

impl Submission {
    /// Sends the request, or keeps it until another one of the step ends.
    pub fn submit(self) {
        let admitted = match self.target.limiter.clone() {
            Some(limiter) => limiter.enter(self),
            None => Some(self),
        };
        if let Some(submission) = admitted {
            submission.send();
        }
    }

    /// Sends the request. A refusal is a response like any other.
    pub fn send(self) {
        let Self { target, request, context, responder } = self;
        if let Err(refused) = target.model.infer(request, context, responder) {
            refused.answer();
        }
    }
}

#[derive(Default)]
struct Dispatcher {
    /// A caller of [`run`] on this thread works through the list.
    is_running: Cell<bool>,
    list: RefCell<VecDeque<Entry>>,
}

enum Entry {
    Submit(Submission),
    /// It has its place at the step's limiter.
    Send(Submission),
}

thread_local! {
    static DISPATCHER: Dispatcher = Dispatcher::default();
}

/// Runs `f`, then submits all that was added to the list by it, and by what follows from that.
pub(super) fn run(f: impl FnOnce()) {
    let is_first = DISPATCHER.try_with(|d| !d.is_running.replace(true)).unwrap_or(false);
    // Not `then_some`: an end that is made and dropped has its effect.
    let _end = is_first.then(|| End);
    f();
    if is_first {
        while let Some(entry) = next() {
            entry.dispatch();
        }
    }
}

/// Adds to the list of this thread; to be called within [`run`].
pub(super) fn add(submission: Submission) {
    push(Entry::Submit(submission));
}

/// Adds a submission that has its place at the limiter already.
pub(super) fn add_admitted(submission: Submission) {
    push(Entry::Send(submission));
}

impl Entry {
    fn dispatch(self) {
        match self {
            Entry::Submit(submission) => submission.submit(),
            Entry::Send(submission) => submission.send(),
        }
    }
}

fn push(entry: Entry) {
    let mut entry = Some(entry);
    let pushed = DISPATCHER.try_with(|dispatcher| {
        if let Some(entry) = entry.take() {
            dispatcher.list.borrow_mut().push_back(entry);
        }
    });
    // A thread that is about to end has no list any more.
    if let (Err(_), Some(entry)) = (pushed, entry) {
        entry.dispatch();
    }
}

fn next() -> Option<Entry> {
    DISPATCHER.try_with(|dispatcher| dispatcher.list.borrow_mut().pop_front()).ok().flatten()
}

/// Leaves the list usable whatever happens: what is left in it after a panic is dropped, which answers it with an
/// error.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let left = DISPATCHER.try_with(|dispatcher| {
            dispatcher.is_running.set(false);
            if std::thread::panicking() { dispatcher.list.take() } else { VecDeque::new() }
        });
        drop(left);
    }
}
