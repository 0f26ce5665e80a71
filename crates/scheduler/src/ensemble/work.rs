//! Steps on their way to their models, one list per thread.
//!
//! A model may answer while it is being asked. Its answer then only adds to the list, and whoever asks works
//! it off: however long a chain of immediate answers is, the stack stays as it was, and no lock is held.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::Arc,
};

use galatea_types::{InferRequest, RequestContext, Responder};

use super::{graph::StepModel, run::Run};

/// A request of one step, with its way back.
pub(super) struct Submission {
    pub run: Arc<Run>,
    /// Number of the step.
    pub step: usize,
    pub request: InferRequest,
    pub context: RequestContext,
    pub responder: Responder,
}

impl Submission {
    fn submit(self) {
        let run = self.run.clone();
        let Some(step) = run.graph().steps.get(self.step) else { return };
        let free = match &step.limiter {
            Some(limiter) => limiter.enter(self),
            None => Some(self),
        };
        if let Some(submission) = free {
            submission.send(&step.model);
        }
    }

    fn send(self, model: &StepModel) {
        if let Err(refused) = model.target.infer(self.request, self.context, self.responder) {
            refused.answer();
        }
    }
}

#[derive(Default)]
struct Work {
    is_worked_off: Cell<bool>,
    list: RefCell<VecDeque<Entry>>,
}

enum Entry {
    Submit(Submission),
    /// It took over a place at its step's limiter.
    Send(Submission),
}

thread_local! {
    static WORK: Work = Work::default();
}

/// Runs `f`, then submits all that it added to the list, and all that was added meanwhile.
pub(super) fn within(f: impl FnOnce()) {
    let is_first = WORK.try_with(|work| !work.is_worked_off.replace(true)).unwrap_or(false);
    let _end = is_first.then(|| End);
    f();
    if is_first {
        while let Some(entry) = next() {
            entry.go();
        }
    }
}

/// Adds to the list of this thread; to be called within [`within`].
pub(super) fn add(submission: Submission) {
    push(Entry::Submit(submission));
}

/// Adds a submission that has its place at the limiter already.
pub(super) fn add_admitted(submission: Submission) {
    push(Entry::Send(submission));
}

impl Entry {
    fn go(self) {
        match self {
            Entry::Submit(submission) => submission.submit(),
            Entry::Send(submission) => {
                let run = submission.run.clone();
                if let Some(step) = run.graph().steps.get(submission.step) {
                    submission.send(&step.model);
                }
            }
        }
    }
}

fn push(entry: Entry) {
    let mut entry = Some(entry);
    let pushed = WORK.try_with(|work| {
        if let Some(entry) = entry.take() {
            work.list.borrow_mut().push_back(entry);
        }
    });
    // A thread that is about to end has no list any more.
    if let (Err(_), Some(entry)) = (pushed, entry) {
        entry.go();
    }
}

fn next() -> Option<Entry> {
    WORK.try_with(|work| work.list.borrow_mut().pop_front()).ok().flatten()
}

/// Leaves the list usable whatever happens: what a panic left in it answers with an error when dropped.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let left = WORK.try_with(|work| {
            work.is_worked_off.set(false);
            if std::thread::panicking() { work.list.take() } else { VecDeque::new() }
        });
        drop(left);
    }
}
