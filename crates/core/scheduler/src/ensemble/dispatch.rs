//! Submits steps to their models, with one list of submissions per thread.
//!
//! A model may respond while a request is being submitted to it. Its response then only adds to the list, and the
//! submitting thread works through it. So a long chain of immediate responses does not grow the stack, and no lock is held.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::Arc,
};

use galatea_backend::InferTarget;
use galatea_types::{InferRequest, RequestContext, Responder};

use super::limiter::Limiter;

/// The model that executes a step, and the limit on its requests.
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
    /// True if it has a place at the step's limiter.
    pub is_admitted: bool,
}

impl Submission {
    /// Sends the request, or keeps it until another request of the step ends. A refusal is handled like a response.
    fn submit(self) {
        let limiter = if self.is_admitted { None } else { self.target.limiter.clone() };
        let admitted = match limiter {
            Some(limiter) => limiter.enter(self),
            None => Some(self),
        };
        let Some(Self { target, request, context, responder, .. }) = admitted else { return };
        if let Err(refused) = target.model.infer(request, context, responder) {
            refused.answer();
        }
    }
}

#[derive(Default)]
struct Dispatcher {
    /// True while a caller of [`run`] on this thread works through the list.
    is_running: Cell<bool>,
    list: RefCell<VecDeque<Submission>>,
}

thread_local! {
    static DISPATCHER: Dispatcher = Dispatcher::default();
}

/// Runs `f`, then submits everything that `f` and the submissions themselves add to the list.
pub(super) fn run(f: impl FnOnce()) {
    let is_first = DISPATCHER.try_with(|d| !d.is_running.replace(true)).unwrap_or(false);
    // Not `then_some`, which would make a `DispatchEnd` in any case, and dropping it has an effect.
    let _end = is_first.then(|| DispatchEnd);
    f();
    if is_first {
        while let Some(submission) = next() {
            submission.submit();
        }
    }
}

/// Adds to the list of this thread. Must be called within [`run`].
pub(super) fn add(submission: Submission) {
    let mut submission = Some(submission);
    let added = DISPATCHER.try_with(|dispatcher| {
        if let Some(submission) = submission.take() {
            dispatcher.list.borrow_mut().push_back(submission);
        }
    });
    // A thread that is about to end has no list any more.
    if let (Err(_), Some(submission)) = (added, submission) {
        submission.submit();
    }
}

fn next() -> Option<Submission> {
    DISPATCHER.try_with(|dispatcher| dispatcher.list.borrow_mut().pop_front()).ok().flatten()
}

/// Leaves the list usable after a panic: submissions left in it are dropped, which answers them with an error.
struct DispatchEnd;

impl Drop for DispatchEnd {
    fn drop(&mut self) {
        let left = DISPATCHER.try_with(|dispatcher| {
            dispatcher.is_running.set(false);
            if std::thread::panicking() { dispatcher.list.take() } else { VecDeque::new() }
        });
        drop(left);
    }
}
