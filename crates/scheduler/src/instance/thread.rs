//! The thread of one instance: it pulls batches and executes them, and restarts the instance when it broke.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{Batch, ModelInstance, PendingRequest};
use galatea_types::{Error, Result};

use super::{
    context::ModelContext,
    error::InstanceError,
    restart_backoff::RestartBackoff,
    slot::{InstanceSlot, discard, panic_message},
    start::start,
};
use crate::{
    accounting::{Items, StreamAccounting},
    queued_request::QueuedRequest,
    request_queue::{Done, RequestQueue, Work},
    sync::mpsc,
};

/// How long requests may wait, unanswered, for an instance that is about to be restarted.
const MAX_WAIT_FOR_RESTART: Duration = Duration::from_secs(1);

/// How long an instance catches up until it is looked whether it is needed.
const CATCH_UP_STEP: Duration = Duration::from_millis(100);

/// Runs on the thread of one instance: starts the instance, sends the outcome to `ready`, and executes
/// batches until the queue is closed and empty.
pub(crate) fn run(context: &ModelContext, slot: InstanceSlot, ready: mpsc::Sender<Result<()>>) {
    let queue = slot.queue.clone();
    let _end = EndOfThread(&queue, slot.index);
    let placement = context.execution.placement(&context.config, &slot.spec);
    let placed = placement.apply().map_err(|error| Error::internal(error.to_string()));
    match placed.and_then(|()| start(&slot, context)) {
        Ok(instance) => {
            // The starter waits for every thread, so it is there to receive this.
            let _ = ready.send(Ok(()));
            // The starter waits until no thread can send anything any more.
            drop(ready);
            let backoff = RestartBackoff::new(Instant::now());
            let thread = InstanceThread {
                context,
                slot,
                instance,
                backoff,
                has_panicked: false,
                handed_over: 0,
                busy_until: Instant::now(),
            };
            thread.serve();
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

struct EndOfThread<'a>(&'a RequestQueue, usize);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.thread_ended(self.1);
    }
}

pub(super) struct InstanceThread<'a> {
    pub(super) context: &'a ModelContext,
    pub(super) slot: InstanceSlot,
    pub(super) instance: Box<dyn ModelInstance>,
    backoff: RestartBackoff,
    pub(super) has_panicked: bool,
    /// Number of the batch that was handed over last.
    pub(super) handed_over: usize,
    /// When it ended what it executed last.
    pub(super) busy_until: Instant,
}

impl InstanceThread<'_> {
    fn serve(mut self) {
        let mut done = Done::from(0);
        loop {
            if self.instance.is_behind() {
                self.slot.queue.finish(std::mem::take(&mut done.requests));
                self.catch_up();
            }
            match self.slot.queue.pull(self.slot.index, done, || self.rest()) {
                Work::Batch(requests) => done = Done::from(self.execute(requests)),
                Work::Steps(steps) => done = self.execute_steps(steps),
                Work::Dropped(dropped) => {
                    done = Done::from(dropped.len());
                    self.slot.responses.answer_dropped(dropped);
                }
                Work::Restart(reason) => {
                    self.rest();
                    done = Done::from(0);
                    let Some(restarted) = self.restart(reason) else { return };
                    self = restarted;
                }
                Work::Retire => {
                    self.rest();
                    self.slot.streams.wait_until_none();
                    return discard(self.instance);
                }
                Work::End => {
                    // An alarm that the instance raises because it ends is ignored.
                    self.slot.queue.instance_begins(self.slot.index);
                    return discard(self.instance);
                }
            }
        }
    }

    /// While the instance still executes what was answered already, requests go to others, where there are any.
    fn catch_up(&mut self) {
        let InstanceSlot { queue, index, .. } = &self.slot;
        while self.instance.is_behind() && queue.can_do_without(*index) {
            self.instance.catch_up(CATCH_UP_STEP);
        }
        self.busy_until = Instant::now();
    }

    /// It has nothing to do from now on. One that answers after `execute` has returned is at work until it has answered:
    /// its open streams tell that.
    fn rest(&self) {
        if !self.context.may_answer_later {
            self.slot.busy.end(self.busy_until);
        }
    }

    /// Executes and answers what was pulled, and what is handed over meanwhile. Returns how many requests are finished that
    /// the queue does not know of.
    fn execute(&mut self, mut requests: Vec<QueuedRequest>) -> usize {
        if !self.context.is_pipelined || self.instance.pipeline().is_none() {
            return self.execute_batch(requests);
        }
        requests.pop().map_or(0, |request| self.execute_pipelined(request))
    }

    /// Executes one batch and answers it, except for requests that the backend took out to answer them later.
    /// Returns how many requests are finished.
    fn execute_batch(&mut self, requests: Vec<QueuedRequest>) -> usize {
        let count = requests.len();
        // Not collected, which would be in place and give the rest of the memory back: that costs more than new memory.
        let mut pending = Vec::with_capacity(count);
        pending.extend(requests.into_iter().map(|request| self.slot.responses.take(request)));
        let batch = self.new_batch(pending);
        let (batch, streams) = self.run(batch);
        count - self.answer(batch, streams)
    }

    /// Has the instance execute a batch. After a panic it counts as broken.
    pub(super) fn run(&mut self, mut batch: Batch) -> (Batch, Option<Arc<StreamAccounting>>) {
        let InstanceSlot { queue, responses, streams: open, busy, .. } = &self.slot;
        let begun = batch.execution().received;
        if !self.context.may_answer_later {
            busy.begin(begun);
        }
        let streams = self.context.may_answer_later.then(|| {
            let accounting = responses.accounting().clone();
            let (items, open) = (Items::of(&batch), open.open(begun));
            let streams = StreamAccounting::new(Some(queue.clone()), accounting, items, open);
            let streams = Arc::new(streams);
            batch.observe(streams.clone());
            streams
        });
        // The batch stays whole whatever the backend was doing: its responses are set one by one.
        let result = catch_unwind(AssertUnwindSafe(|| self.instance.execute(&mut batch)));
        if let Err(panic) = &result {
            batch.fail_all(&self.note_panic(&**panic));
        }
        (batch, streams)
    }

    /// Answers an executed batch. Returns how many requests somebody else reports the end of.
    pub(super) fn answer(&mut self, batch: Batch, streams: Option<Arc<StreamAccounting>>) -> usize {
        self.slot.queue.about_to_answer(self.slot.index);
        let (end, taken) = self.slot.responses.answer_batch(batch, streams.as_deref());
        self.busy_until = end;
        // Without an observer nobody reports when a request that was taken has ended.
        if streams.is_some() { taken } else { 0 }
    }

    pub(super) fn new_batch(&self, requests: Vec<PendingRequest>) -> Batch {
        log::debug!(
            "model {}, instance {}, executing {} requests",
            self.context.name,
            self.slot.spec.name,
            requests.len()
        );
        Batch::new(self.context.name.clone(), self.context.version, requests)
    }

    /// From now on the instance counts as broken. Returns the error for clients.
    pub(super) fn note_panic(&mut self, panic: &(dyn Any + Send)) -> Error {
        self.has_panicked = true;
        let InstanceSlot { queue, index, spec, .. } = &self.slot;
        let reason = panic_message(panic);
        let (model, instance) = (&self.context.name, spec.name.clone());
        log::error!("instance {instance} of model '{model}' panicked: {reason}");
        let panicked = InstanceError::Panicked { instance, reason: reason.to_owned() };
        let panicked = Error::from(panicked);
        queue.break_current_instance(*index, panicked.clone());
        self.failed_unexpectedly().with_source(panicked)
    }

    /// The error for clients whose requests an instance had when it panicked.
    pub(super) fn failed_unexpectedly(&self) -> Error {
        let (instance, model) = (self.slot.spec.name.clone(), self.context.name.to_string());
        InstanceError::FailedUnexpectedly { instance, model }.into()
    }

    /// Drops the instance and starts it again, however often it takes. `None`: nothing is left to be done, because the
    /// queue was closed or the instance retired.
    fn restart(mut self, mut reason: Error) -> Option<Self> {
        let Self { context, ref slot, .. } = self;
        let InstanceSlot { queue, spec, .. } = slot;
        let model = &context.name;
        discard(self.instance);
        // Panics come no faster than requests do: there is no need to slow them down.
        let mut wait = match self.has_panicked {
            true => Duration::ZERO,
            false => self.backoff.after_break(Instant::now()),
        };
        let mut is_given_up = false;
        loop {
            if wait >= MAX_WAIT_FOR_RESTART {
                give_up(slot, &reason);
                is_given_up = true;
            }
            let is_useless = || is_given_up || queue.is_retired(slot.index) || !queue.has_queued();
            if queue.is_closed_within(slot.index, wait) && is_useless() {
                return None;
            }
            match start(slot, context) {
                Ok(instance) => {
                    self.backoff.started(Instant::now());
                    slot.responses.accounting().restarted();
                    log::info!("instance {} of model '{model}' was restarted", spec.name);
                    return Some(Self { instance, has_panicked: false, ..self });
                }
                Err(error) => reason = error,
            }
            log::error!("cannot restart instance {} of model '{model}': {reason}", spec.name);
            give_up(slot, &reason);
            is_given_up = true;
            wait = self.backoff.after_failure();
        }
    }
}

/// Requests no longer wait for this instance; those that wait for no other are answered.
fn give_up(slot: &InstanceSlot, reason: &Error) {
    let unserved = slot.queue.give_up_instance(slot.index, reason);
    let count = unserved.len();
    slot.responses.answer_outage(unserved, reason);
    slot.queue.finish(count);
}
