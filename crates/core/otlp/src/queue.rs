//! The traces that wait to be sent.

use std::collections::VecDeque;

use galatea_trace::FinishedTrace;

use crate::{options::BatchLimits, spans};

/// The outcome of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// The trace waits with others.
    Waits,
    /// The trace waits, and the sender must wake up: it is the first one, or a batch is full.
    Wakes,
    /// There was no room.
    Lost,
}

/// Finished traces, in the order in which they ended. Their bytes are counted by the memory for traces.
#[derive(Debug)]
pub(crate) struct Queue {
    limits: BatchLimits,
    waiting: VecDeque<FinishedTrace>,
    /// The most spans that the waiting traces have.
    spans: usize,
    /// The log says that traces are lost. It holds until the queue is empty.
    pub is_told: bool,
}

impl Queue {
    pub fn new(limits: BatchLimits) -> Self {
        Self { limits, waiting: VecDeque::new(), spans: 0, is_told: false }
    }

    /// Adds a trace, if there is room for all its spans. A trace of more spans than the queue may hold needs an empty one.
    pub fn push(&mut self, trace: FinishedTrace) -> PushOutcome {
        let spans = spans::most_spans(&trace);
        let is_empty = self.waiting.is_empty();
        if !is_empty && self.spans + spans > self.limits.max_queue_size as usize {
            return PushOutcome::Lost;
        }
        let was_full = self.is_full();
        self.waiting.push_back(trace);
        self.spans += spans;
        if is_empty || (self.is_full() && !was_full) {
            PushOutcome::Wakes
        } else {
            PushOutcome::Waits
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of traces that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether a batch is complete.
    pub fn is_full(&self) -> bool {
        self.spans >= self.limits.max_export_batch_size as usize
    }

    /// Takes whole traces of one batch; at least one, if any waits.
    pub fn take(&mut self) -> Vec<FinishedTrace> {
        let (mut batch, mut room) = (Vec::new(), self.limits.max_export_batch_size as usize);
        while let Some(trace) = self.waiting.front() {
            let spans = spans::most_spans(trace);
            if spans > room && !batch.is_empty() {
                break;
            }
            room = room.saturating_sub(spans);
            self.spans -= spans;
            batch.extend(self.waiting.pop_front());
        }
        self.is_told &= !self.waiting.is_empty();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::testing::traces;

    fn queue(max_queue_size: u32, max_export_batch_size: u32) -> Queue {
        let schedule_delay = std::time::Duration::from_secs(5);
        Queue::new(BatchLimits { max_queue_size, schedule_delay, max_export_batch_size })
    }

    #[test]
    fn the_first_trace_and_a_full_batch_wake_the_sender() {
        let mut queue = queue(100, 6);
        let pushed: Vec<_> = traces(4).into_iter().map(|trace| queue.push(trace)).collect();
        // Each trace has three spans at most.
        assert_eq!(
            pushed,
            [PushOutcome::Wakes, PushOutcome::Wakes, PushOutcome::Waits, PushOutcome::Waits]
        );
        assert_eq!([queue.take().len(), queue.take().len(), queue.take().len()], [2, 2, 0]);
        assert!(queue.is_empty() && !queue.is_full());
    }

    #[test]
    fn traces_beyond_the_queue_are_lost_and_told_until_it_is_empty() {
        let mut queue = queue(6, 6);
        let push = |queue: &mut Queue| traces(1).into_iter().map(|t| queue.push(t)).next();
        for _ in 0..2 {
            for expected in
                [PushOutcome::Wakes, PushOutcome::Wakes, PushOutcome::Lost, PushOutcome::Lost]
            {
                assert_eq!(push(&mut queue), Some(expected));
            }
            assert!(!std::mem::replace(&mut queue.is_told, true));
            assert_eq!(queue.take().len(), 2);
        }
    }

    #[test]
    fn a_trace_of_more_spans_than_the_queue_holds_goes_alone() {
        let mut queue = queue(2, 2);
        let mut traces = traces(2).into_iter();
        assert_eq!(traces.next().map(|t| queue.push(t)), Some(PushOutcome::Wakes));
        let second = traces.next().map(|t| queue.push(t));
        assert_eq!(second, Some(PushOutcome::Lost));
        assert_eq!(queue.take().len(), 1);
    }
}
