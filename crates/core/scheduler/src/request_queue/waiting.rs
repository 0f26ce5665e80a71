//! The requests that wait for the instances of a queue: either requests that any instance may execute, or requests of
//! sequences, each for the instance that has its sequence.

use std::time::Instant;

use galatea_config::{ModelConfig, Scheduling};
use galatea_types::Error;

use super::Work;
use crate::{
    queue::{Backlog, Decision, DropReason},
    sequence::{SequenceDrop, SequenceRequest, SequenceRules, Sequences, TestHold},
};

/// All waiting requests of a queue.
pub(super) enum Waiting<T: SequenceRequest> {
    Requests(Box<Backlog<T>>),
    Sequences(Box<Sequences<T>>),
}

/// The reason why an accepted request is not executed.
#[derive(Clone, Debug)]
pub(crate) enum NotExecuted {
    Request(DropReason),
    OfSequence(SequenceDrop),
}

impl<T: SequenceRequest> Waiting<T> {
    pub fn from_config(config: &ModelConfig, instances: usize, hold: TestHold) -> Self {
        let Scheduling::Sequence(batching) = config.scheduling() else {
            return Self::Requests(Box::new(Backlog::from_config(config, hold.queued)));
        };
        let rules = SequenceRules::new(config, batching, hold);
        let batcher = || Backlog::from_config(config, hold.queued);
        Self::Sequences(Box::new(Sequences::new(rules, instances, batcher)))
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Requests(backlog) => backlog.len(),
            Self::Sequences(sequences) => sequences.len(),
        }
    }

    /// Returns the number of items that wait for this instance, or for any instance if all are equal.
    pub fn item_count(&self, instance: usize) -> u64 {
        match self {
            Self::Requests(backlog) => backlog.item_count(),
            Self::Sequences(sequences) => sequences.ready_items(instance),
        }
    }

    /// Returns true if each instance has work that no other may do.
    pub fn is_per_instance(&self) -> bool {
        matches!(self, Self::Sequences(_))
    }

    /// Removes expired requests, and returns when to look again.
    pub fn take_expired(&mut self, now: Instant) -> (Vec<(T, NotExecuted)>, Option<Instant>) {
        match self {
            Self::Requests(backlog) => {
                let (expired, next) = backlog.take_expired(now);
                let reason = NotExecuted::Request(DropReason::Expired);
                (expired.into_iter().map(|request| (request, reason.clone())).collect(), next)
            }
            Self::Sequences(sequences) => {
                sequences.end_overdue(now);
                let next = sequences.next_event();
                (self.take_dropped(), next)
            }
        }
    }

    /// Declares that sequences without waiting requests will not continue.
    pub fn expect_no_more(&mut self, now: Instant) {
        if let Self::Sequences(sequences) = self {
            sequences.expect_no_more(now);
        }
    }

    pub fn is_held(&mut self, is_closed: bool) -> bool {
        match self {
            Self::Requests(backlog) => backlog.is_held(is_closed),
            Self::Sequences(sequences) => sequences.is_held(is_closed),
        }
    }

    /// Decides what an instance does now. `idle` is the number of other instances without work.
    pub fn decide(
        &mut self,
        instance: usize,
        idle: usize,
        now: Instant,
        is_closed: bool,
    ) -> Decision {
        match self {
            Self::Requests(backlog) => backlog.decide_beside(idle, now, is_closed),
            Self::Sequences(sequences) => sequences.decide(instance, now, is_closed),
        }
    }

    /// Takes the requests of a decision; returns them as work, with their number.
    pub fn take(&mut self, instance: usize, count: usize, now: Instant) -> (Work<T>, usize) {
        match self {
            Self::Requests(backlog) => {
                let requests = backlog.take(count);
                if backlog.learns_delay() {
                    backlog.begins(instance, &requests, now);
                }
                let count = requests.len();
                (Work::Batch(requests), count)
            }
            Self::Sequences(sequences) => {
                let steps = sequences.take(instance, count, now);
                let count = steps.iter().flatten().count();
                (Work::Steps(steps), count)
            }
        }
    }

    /// Removes all requests, because nothing will execute them.
    pub fn take_all(&mut self) -> Vec<T> {
        match self {
            Self::Requests(backlog) => {
                let waiting = backlog.len();
                backlog.take(waiting)
            }
            Self::Sequences(sequences) => sequences.take_all(),
        }
    }

    /// Removes requests that the last decision found abandoned or expired; the caller must answer each.
    pub fn take_dropped(&mut self) -> Vec<(T, NotExecuted)> {
        match self {
            Self::Requests(backlog) => {
                let dropped = backlog.take_dropped().into_iter();
                dropped.map(|(request, why)| (request, NotExecuted::Request(why))).collect()
            }
            Self::Sequences(sequences) => {
                let dropped = sequences.take_dropped().into_iter();
                dropped.map(|(request, why)| (request, NotExecuted::OfSequence(why))).collect()
            }
        }
    }

    /// Removes all abandoned requests, and those that end with them.
    pub fn take_abandoned(&mut self, now: Instant) -> Vec<(T, NotExecuted)> {
        match self {
            Self::Requests(backlog) => {
                let abandoned = backlog.take_abandoned().into_iter();
                let reason = NotExecuted::Request(DropReason::Abandoned);
                abandoned.map(|request| (request, reason.clone())).collect()
            }
            Self::Sequences(sequences) => {
                sequences.drop_abandoned(now);
                self.take_dropped()
            }
        }
    }

    /// Returns the instances that got work without a wake-up.
    pub fn take_fed(&mut self) -> Vec<usize> {
        match self {
            Self::Requests(_) => Vec::new(),
            Self::Sequences(sequences) => sequences.take_fed(),
        }
    }

    pub fn instance_works(&mut self, instance: usize, now: Instant) {
        if let Self::Sequences(sequences) = self {
            sequences.instance_works(instance, now);
        }
    }

    pub fn instance_lost(&mut self, instance: usize, reason: &Error, now: Instant) {
        if let Self::Sequences(sequences) = self {
            sequences.instance_lost(instance, reason, now);
        }
    }

    /// Returns the requests that any instance may execute; `None` for sequences.
    pub fn requests(&mut self) -> Option<&mut Backlog<T>> {
        match self {
            Self::Requests(backlog) => Some(backlog),
            Self::Sequences(_) => None,
        }
    }
}
