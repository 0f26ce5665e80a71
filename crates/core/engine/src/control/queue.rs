//! The operations that wait for a control thread, and those that run.

use std::collections::{HashSet, VecDeque};

use galatea_types::{Code, Error, Result};
use tokio::sync::oneshot;

/// The properties of an operation that the queue uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A load. `has_overrides` is true if the request has a configuration or files.
    Load {
        model: String,
        has_overrides: bool,
    },
    Unload {
        model: String,
        with_dependents: bool,
    },
    /// A readiness check by the model itself.
    Readiness {
        model: String,
        version: Option<i64>,
    },
    /// Reading the repository, or any other slow work that ends by itself.
    Query,
}

/// A class of operations, with a number of threads that no other class can take from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Load,
    Unload,
    Readiness,
    Query,
}

/// The subject of an operation. Of those with the same subject one runs at a time, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject<'a> {
    /// The loaded versions of this model.
    Model(&'a str),
    /// The readiness of a version by its own check.
    Readiness(&'a str, Option<i64>),
}

impl Operation {
    pub fn class(&self) -> Class {
        match self {
            Self::Load { .. } => Class::Load,
            Self::Unload { .. } => Class::Unload,
            Self::Readiness { .. } => Class::Readiness,
            Self::Query => Class::Query,
        }
    }

    /// Returns the subject; `None` if it may run at the same time as any other operation.
    fn subject(&self) -> Option<Subject<'_>> {
        match self {
            Self::Load { model, .. } | Self::Unload { model, .. } => Some(Subject::Model(model)),
            Self::Readiness { model, version } => Some(Subject::Readiness(model, *version)),
            Self::Query => None,
        }
    }

    /// Returns true if one run answers all callers who asked for it before it began.
    fn can_be_shared(&self) -> bool {
        !matches!(self, Self::Load { has_overrides: true, .. } | Self::Query)
    }
}

galatea_types::names! {
    /// The label in a metric.
    pub(super) Class::label {
        Load = "load", Unload = "unload", Readiness = "readiness", Query = "query",
    }
}

impl Class {
    /// The name in the text of a refusal.
    fn plural(self) -> &'static str {
        match self {
            Self::Load => "loads of models",
            Self::Unload => "unloads of models",
            Self::Readiness => "readiness checks of models",
            Self::Query => "queries",
        }
    }
}

/// The result of an operation; the value is that of a readiness check.
pub(super) type Outcome = Result<bool>;

/// An operation, its work, and the callers that wait for it.
pub(super) struct Job {
    pub operation: Operation,
    pub work: Box<dyn FnOnce() -> Outcome + Send>,
    pub callers: Vec<oneshot::Sender<Outcome>>,
}

impl Job {
    /// Answers all callers that wait for it.
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

/// The numbers of running and waiting operations of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub running: usize,
    /// Callers, not operations: several may wait for one.
    pub waiting: usize,
}

/// The limit of each class, in the order of [`Class::ALL`].
pub(super) type Limits = [Limit; Class::ALL.len()];

/// The waiting operations in the order of arrival, and the running ones.
pub(super) struct Queue {
    limits: Limits,
    waiting: VecDeque<Job>,
    running: Vec<Operation>,
}

impl Queue {
    pub fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), running: Vec::new() }
    }

    /// Adds a job, or adds its callers to an equal one that waits.
    pub fn push(&mut self, job: Job) -> Result<(), (Job, Error)> {
        let class = job.operation.class();
        let limit = self.limits[class as usize].waiting;
        if self.waiting_callers(class) >= limit {
            let text = format!(
                "too many {} are waiting, the limit is {limit}: try again later",
                class.plural()
            );
            return Err((job, Error::new(Code::Exhausted, text)));
        }
        match self.waiting_for_the_same(&job.operation) {
            Some(waiting) => waiting.callers.extend(job.callers),
            None => self.waiting.push_back(job),
        }
        Ok(())
    }

    pub fn counts(&self, class: Class) -> Limit {
        let running = self.running.iter().filter(|operation| operation.class() == class).count();
        Limit { running, waiting: self.waiting_callers(class) }
    }

    fn waiting_callers(&self, class: Class) -> usize {
        let of_class = self.waiting.iter().filter(|job| job.operation.class() == class);
        of_class.map(|job| job.callers.len()).sum()
    }

    /// Returns the last waiting job with the same subject if it is equal, because then no job between them changes the subject.
    fn waiting_for_the_same(&mut self, operation: &Operation) -> Option<&mut Job> {
        let subject = operation.subject().filter(|_| operation.can_be_shared())?;
        let last = self.waiting.iter_mut().rfind(|job| job.operation.subject() == Some(subject));
        last.filter(|job| job.operation == *operation)
    }

    /// Starts the next job that may run.
    pub fn start_next(&mut self) -> Option<Job> {
        let job = self.waiting.remove(self.next()?)?;
        self.running.push(job.operation.clone());
        Some(job)
    }

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
                // Later jobs with the same subject must not overtake it.
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

    /// Takes out jobs without a waiting caller.
    pub fn take_unwanted(&mut self) -> Vec<Job> {
        for job in &mut self.waiting {
            job.callers.retain(|caller| !caller.is_closed());
        }
        self.take(|job| job.callers.is_empty())
    }

    pub fn take(&mut self, is_taken: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (taken, left): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_taken);
        self.waiting = left.into();
        taken
    }
}
