//! Executing requests one by one, each handed over while the one before it is executed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use galatea_backend::{Batch, HandedOver, Outcome, Pipeline};

use super::thread::InstanceThread;
use crate::{queued_request::QueuedRequest, request_queue::Next};

impl InstanceThread<'_> {
    /// Executes a request, and then those that are handed over behind it. Returns how many are finished that the queue
    /// does not know of.
    pub(super) fn execute_pipelined(&mut self, first: QueuedRequest) -> usize {
        let mut current = self.batch_of(first);
        self.with_pipeline(&mut current, |pipeline, batch| pipeline.begin(batch));
        let queue = self.slot.queue.clone();
        let mut ahead = queue.next_ahead(self.slot.index, 0);
        loop {
            let mut done = ahead.take().map_or(0, |request| self.hand_over(request));
            self.with_pipeline(&mut current, |pipeline, batch| pipeline.complete(batch));
            self.slot.responses.answer_batch(current, None);
            done += 1;
            let goes_on = self.executes_what_waits();
            let Next { begun, ahead: next } = queue.next(self.slot.index, done, goes_on);
            let Some(begun) = begun else { return 0 };
            current = self.batch_of(begun).numbered(self.handed_over);
            ahead = next;
        }
    }

    fn executes_what_waits(&mut self) -> bool {
        if self.has_panicked || self.instance.is_behind() {
            return false;
        }
        self.instance.pipeline().is_some_and(|pipeline| !pipeline.has_ended())
    }

    /// Hands a request over behind the one that is executed, or puts it back. Returns how many are finished thereby.
    fn hand_over(&mut self, QueuedRequest { pending, arrival }: QueuedRequest) -> usize {
        self.handed_over = self.handed_over.wrapping_add(1);
        let mut batch = self.new_batch(vec![pending]).numbered(self.handed_over);
        let handle =
            self.with_pipeline(&mut batch, |pipeline, batch| pipeline.hand_over(batch)).flatten();
        let is_answered = batch.outcomes().any(|(_, o)| !matches!(o, Outcome::Unanswered));
        if is_answered {
            self.slot.responses.accounting().dequeued();
            self.slot.responses.answer_batch(batch, None);
            return 1;
        }
        let Some((pending, _)) = batch.into_outcomes().next() else { return 1 };
        self.wait_for_turn(QueuedRequest { pending, arrival }, handle);
        0
    }

    fn wait_for_turn(&self, request: QueuedRequest, handle: Option<Arc<dyn HandedOver>>) {
        let queue = &self.slot.queue;
        match handle {
            Some(handle) => queue.handed_over(self.slot.index, request, handle),
            None => queue.put_back(request),
        }
    }

    /// A batch whose execution begins now.
    fn batch_of(&self, request: QueuedRequest) -> Batch {
        self.new_batch(vec![self.slot.responses.take(request)])
    }

    /// Nothing is done after a panic, which fails the batch.
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
