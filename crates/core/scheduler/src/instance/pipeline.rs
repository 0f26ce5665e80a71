//! Executes requests one by one; each is handed over while the one before it is executed.

use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
};

use galatea_backend::{Batch, Outcome, Pipeline};

use super::executor::Executor;
use crate::{
    queued_request::QueuedRequest,
    request_queue::{Next, PrefetchedRequest},
};

impl Executor {
    /// Executes a request and then those that are handed over behind it. Returns the number of finished requests that the
    /// queue has not been told of.
    pub(super) fn execute_pipelined(&mut self, first: QueuedRequest) -> usize {
        let mut current = self.batch_of(first);
        self.with_pipeline(&mut current, |pipeline, batch| pipeline.begin(batch));
        let queue = self.slot.queue.clone();
        let mut ahead = queue.next_ahead(self.slot.index, 0, self.room().unwrap_or(0));
        loop {
            let mut done = self.hand_all_over(ahead);
            self.with_pipeline(&mut current, |pipeline, batch| pipeline.complete(batch));
            (self.busy_until, _) = self.slot.responses.answer_batch(current, None);
            done += 1;
            let next = queue.next(self.slot.index, done, self.room());
            let Next { begun: Some((number, begun)), ahead: behind } = next else { return 0 };
            current = self.batch_of(begun).numbered(number);
            ahead = behind;
        }
    }

    /// Returns how many more requests may wait in the instance, or `None` if it does not execute waiting requests.
    fn room(&mut self) -> Option<usize> {
        if self.has_panicked {
            return None;
        }
        self.instance.pipeline().filter(|p| !p.has_ended()).map(|p| p.room())
    }

    /// Hands requests over behind the one that is executed, or puts them back. Returns the number of requests this finishes.
    fn hand_all_over(&mut self, requests: Vec<QueuedRequest>) -> usize {
        let mut requests = requests.into_iter();
        let mut done = 0;
        while let Some(request) = requests.next() {
            match self.hand_over(request) {
                ControlFlow::Continue(finished) => done += finished,
                // Later requests must not overtake this one.
                ControlFlow::Break(request) => {
                    self.slot.queue.put_back([request].into_iter().chain(requests).collect());
                    break;
                }
            }
        }
        done
    }

    /// Hands a request over and returns the number of requests this finishes. Gives the request back if there is no room.
    fn hand_over(&mut self, request: QueuedRequest) -> ControlFlow<QueuedRequest, usize> {
        let QueuedRequest { pending, arrival } = request;
        self.handed_over = self.handed_over.wrapping_add(1);
        let number = self.handed_over;
        let mut batch = self.new_batch([pending]).numbered(number);
        let waiting = self
            .with_pipeline(&mut batch, |pipeline, batch| {
                pipeline.hand_over(batch).then(|| pipeline.waiting())
            })
            .flatten();
        let is_answered = batch.outcomes().any(|(_, o)| !matches!(o, Outcome::Unanswered));
        if is_answered {
            self.slot.responses.accounting.statistics.pending_down();
            self.slot.responses.answer_batch(batch, None);
            return ControlFlow::Continue(1);
        }
        let Some((pending, _)) = batch.into_outcomes().next() else {
            return ControlFlow::Continue(1);
        };
        let request = QueuedRequest { pending, arrival };
        let Some(waiting) = waiting else { return ControlFlow::Break(request) };
        self.slot
            .queue
            .handed_over(self.slot.index, PrefetchedRequest { request, number, waiting });
        ControlFlow::Continue(0)
    }

    /// Makes a batch of a request, whose execution begins now.
    fn batch_of(&self, request: QueuedRequest) -> Batch {
        let batch = self.new_batch([self.slot.responses.take(request)]);
        self.slot.busy.begin(batch.execution().received);
        self.report_execution(1);
        batch
    }

    /// Calls the pipeline, unless the instance has panicked. A panic fails the batch.
    fn with_pipeline<R>(
        &mut self,
        batch: &mut Batch,
        call: impl FnOnce(&mut dyn Pipeline, &mut Batch) -> R,
    ) -> Option<R> {
        if self.has_panicked {
            batch.fail_all(&self.failed_unexpectedly());
            return None;
        }
        let result =
            catch_unwind(AssertUnwindSafe(|| Some(call(self.instance.pipeline()?, batch))));
        result.unwrap_or_else(|panic| {
            batch.fail_all(&self.note_panic(&*panic));
            None
        })
    }
}
