//! Operations that wait for a control thread, and those that run.

use std::collections::{HashSet, VecDeque};

use galatea_types::{Error, Result};
use tokio::sync::oneshot;

use super::{
    error,
    operation::{Class, Operation},
};

/// How an operation ended; the value is that of a question.
pub(super) type Outcome = Result<bool>;

/// An operation, how it is done, and who waits for it.
pub(super) struct Job {
    pub operation: Operation,
    pub work: Box<dyn FnOnce() -> Outcome + Send>,
    pub callers: Vec<oneshot::Sender<Outcome>>,
}

impl Job {
    fn is_wanted(&self) -> bool {
        self.callers.iter().any(|caller| !caller.is_closed())
    }

    /// Answers everyone who waits for it.
    pub fn answer(callers: Vec<oneshot::Sender<Outcome>>, outcome: &Outcome) {
        for caller in callers {
            // A caller may have gone.
            let _ = caller.send(outcome.clone());
        }
    }

    pub fn refuse(self, error: Error) {
        Self::answer(self.callers, &Err(error));
    }
}

/// How many operations of a class run and wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub running: usize,
    /// Callers, not operations: several may wait for one.
    pub waiting: usize,
}

/// The limit of each class, in the order of [`Class::ALL`].
pub(super) type Limits = [Limit; Class::ALL.len()];

/// What waits, in the order it came, and what runs.
pub(super) struct Queue {
    limits: Limits,
    waiting: VecDeque<Job>,
    running: Vec<Operation>,
}

impl Queue {
    pub fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), running: Vec::new() }
    }

    /// Adds a job, or its callers to one that waits and does the same.
    pub fn push(&mut self, job: Job) -> Result<(), (Job, Error)> {
        let class = job.operation.class();
        let limit = self.limits[class as usize].waiting;
        if self.waiting_callers(class) >= limit {
            return Err((job, error::queue_full(class.plural(), limit)));
        }
        match self.waiting_for_the_same(&job.operation) {
            Some(waiting) => waiting.callers.extend(job.callers),
            None => self.waiting.push_back(job),
        }
        Ok(())
    }

    /// How many of a class run, and how many callers wait for it.
    pub fn counts(&self, class: Class) -> Limit {
        let running = self.running.iter().filter(|operation| operation.class() == class).count();
        Limit { running, waiting: self.waiting_callers(class) }
    }

    fn waiting_callers(&self, class: Class) -> usize {
        let of_class = self.waiting.iter().filter(|job| job.operation.class() == class);
        of_class.map(|job| job.callers.len()).sum()
    }

    /// The last job about the same subject, if it does the same: between the two nothing changes the subject.
    fn waiting_for_the_same(&mut self, operation: &Operation) -> Option<&mut Job> {
        let subject = operation.subject().filter(|_| operation.can_be_shared())?;
        let last = self.waiting.iter_mut().rfind(|job| job.operation.subject() == Some(subject));
        last.filter(|job| job.operation == *operation)
    }

    /// The next job that may run, which runs from now on.
    pub fn start_next(&mut self) -> Option<Job> {
        let job = self.waiting.remove(self.next()?)?;
        self.running.push(job.operation.clone());
        Some(job)
    }

    /// Whether a job could run at once.
    pub fn has_next(&self) -> bool {
        self.next().is_some()
    }

    fn next(&self) -> Option<usize> {
        let mut taken: HashSet<_> = self.running.iter().filter_map(Operation::subject).collect();
        self.waiting.iter().position(|job| {
            let (class, subject) = (job.operation.class(), job.operation.subject());
            if subject.is_some_and(|subject| taken.contains(&subject)) {
                return false;
            }
            let running = self.running.iter().filter(|o| o.class() == class).count();
            let has_room = running < self.limits[class as usize].running;
            if !has_room {
                // What came later about the same subject must not overtake it.
                taken.extend(subject);
            }
            has_room
        })
    }

    pub fn finished(&mut self, operation: &Operation) {
        if let Some(at) = self.running.iter().position(|running| running == operation) {
            self.running.swap_remove(at);
        }
    }

    /// Takes out what nobody waits for any more.
    pub fn take_unwanted(&mut self) -> Vec<Job> {
        for job in &mut self.waiting {
            job.callers.retain(|caller| !caller.is_closed());
        }
        self.take(|job| !job.is_wanted())
    }

    /// Takes out the waiting jobs of which `is_taken` holds.
    pub fn take(&mut self, is_taken: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (taken, left): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_taken);
        self.waiting = left.into();
        taken
    }
}
