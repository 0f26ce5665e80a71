//! Executes the batches of one instance, on the instance's thread or on a thread that brings requests and executes them
//! itself. One thread at a time has the executor.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use galatea_backend::{Batch, ModelInstance, PendingRequest};
use galatea_types::{DebugEvent, Error, InstanceName};

use super::{
    context::ModelContext,
    slot::{InstanceSlot, panic_message},
};
use crate::{
    accounting::{StreamAccounting, StreamOrigin},
    queued_request::QueuedRequest,
    sequence::SlotTicket,
    sync::{LockExt, Mutex},
};

/// An instance, with everything needed to execute and answer requests on it.
pub(crate) struct Executor {
    pub(super) context: Arc<ModelContext>,
    pub(super) slot: InstanceSlot,
    pub(super) instance: Box<dyn ModelInstance>,
    pub(super) has_panicked: bool,
    /// Number of the batch that was handed over last.
    pub(super) handed_over: usize,
    /// The time at which the last execution ended.
    pub busy_until: Instant,
}

impl Executor {
    pub fn new(
        context: Arc<ModelContext>,
        slot: InstanceSlot,
        instance: Box<dyn ModelInstance>,
    ) -> Box<Self> {
        let busy_until = context.clock.now();
        Box::new(Self { context, slot, instance, has_panicked: false, handed_over: 0, busy_until })
    }

    /// Ends the busy time of an idle instance. An instance that answers after `execute` has returned is busy until it has
    /// answered: its open streams record that.
    pub fn rest(&self) {
        if !self.context.may_answer_later {
            self.slot.busy.end(self.busy_until);
        }
    }

    /// Executes and answers the pulled requests, and those handed over meanwhile. Returns the number of finished requests that
    /// the queue has not been told of.
    pub fn execute(&mut self, mut requests: Vec<QueuedRequest>) -> usize {
        if !self.context.is_pipelined || self.instance.pipeline().is_none() {
            return self.execute_batch(requests);
        }
        requests.pop().map_or(0, |request| self.execute_pipelined(request))
    }

    /// Executes one batch and answers it, except for requests that the backend took out to answer later.
    /// Returns the number of finished requests.
    pub fn execute_batch(&mut self, requests: Vec<QueuedRequest>) -> usize {
        let count = requests.len();
        if self.context.has_batching {
            self.report(|instance| DebugEvent::BatchFormed { instance, requests: count });
        }
        let bytes = if self.context.pace.is_some() { input_bytes(&requests) } else { 0 };
        let taken = requests.into_iter().map(|request| self.slot.responses.take(request));
        let batch = self.new_batch(taken);
        let begun = batch.execution().received;
        let (batch, streams) = self.run(batch, Vec::new());
        let answered = count - self.answer(batch, streams);
        if let Some(pace) = &self.context.pace {
            pace.note(begun, self.busy_until, bytes);
        }
        answered
    }

    /// Executes a batch on the instance. After a panic the instance counts as broken. `steps` are, by row, the steps whose
    /// sequences wait for the states of their requests.
    pub(super) fn run(
        &mut self,
        mut batch: Batch,
        steps: Vec<Option<SlotTicket>>,
    ) -> (Batch, Option<Arc<StreamAccounting>>) {
        self.report_execution(batch.len());
        let InstanceSlot { queue, responses, streams: open, busy, index, .. } = &self.slot;
        let begun = batch.execution().received;
        if !self.context.may_answer_later {
            busy.begin(begun);
        }
        let streams = self.context.may_answer_later.then(|| {
            let origin = StreamOrigin { queue: queue.clone(), instance: *index, steps };
            let accounting = responses.accounting.clone();
            StreamAccounting::observe(&mut batch, Some(origin), accounting, open)
        });
        // The batch stays whole wherever the backend panics: its responses are set one by one.
        let result = catch_unwind(AssertUnwindSafe(|| self.instance.execute(&mut batch)));
        if let Err(panic) = &result {
            batch.fail_all(&self.note_panic(&**panic));
        }
        (batch, streams)
    }

    /// Answers an executed batch. Returns the number of requests whose end somebody else reports.
    pub(super) fn answer(&mut self, batch: Batch, streams: Option<Arc<StreamAccounting>>) -> usize {
        self.slot.queue.about_to_answer(self.slot.index);
        let (end, taken) = self.slot.responses.answer_batch(batch, streams.as_deref());
        self.busy_until = end;
        // Without an observer nobody reports the end of a request that the backend took.
        if streams.is_some() { taken } else { 0 }
    }

    pub(super) fn new_batch(
        &self,
        requests: impl IntoIterator<Item = PendingRequest, IntoIter: ExactSizeIterator>,
    ) -> Batch {
        let requests = requests.into_iter();
        log::debug!(
            "model {}, instance {}, executing {} requests",
            self.context.name,
            self.slot.spec.name,
            requests.len()
        );
        let ModelContext { clock, name, version, .. } = &*self.context;
        Batch::by_clock(clock, name.clone(), *version, requests)
    }

    pub(super) fn report(&self, event: impl FnOnce(InstanceName) -> DebugEvent) {
        let name = || self.context.instance_name(&self.slot.spec.name);
        self.context.execution.events.report(|| event(name()));
    }

    pub(super) fn report_execution(&self, requests: usize) {
        self.report(|instance| DebugEvent::ExecutionBegan { instance, requests });
    }

    /// Marks the instance as broken. Returns the error for clients.
    pub(super) fn note_panic(&mut self, panic: &(dyn Any + Send)) -> Error {
        self.has_panicked = true;
        let InstanceSlot { queue, index, spec, .. } = &self.slot;
        let reason = panic_message(panic);
        let (model, instance) = (&self.context.name, &spec.name);
        log::error!("instance {instance} of model '{model}' panicked: {reason}");
        let panicked = Error::internal(format!("instance '{instance}' panicked: {reason}"));
        queue.break_current_instance(*index, panicked.clone());
        self.failed_unexpectedly().with_source(panicked)
    }

    /// Returns the error for clients whose requests the instance had when it panicked.
    pub(super) fn failed_unexpectedly(&self) -> Error {
        let (instance, model) = (&self.slot.spec.name, &self.context.name);
        Error::internal(format!(
            "instance '{instance}' of model '{model}' failed unexpectedly while executing"
        ))
    }
}

/// The executors of idle instances, by the numbers of the instances. Each is put here before the thread of its instance
/// sleeps. That thread takes it back, or a thread that works in its place.
#[derive(Default)]
pub(crate) struct Executors(Mutex<Vec<Option<Box<Executor>>>>);

impl Executors {
    pub fn leave(&self, index: usize, executor: Box<Executor>) {
        let mut executors = self.0.lock_unpoisoned();
        if index >= executors.len() {
            executors.resize_with(index + 1, || None);
        }
        executors[index] = Some(executor);
    }

    pub fn take(&self, index: usize) -> Option<Box<Executor>> {
        self.0.lock_unpoisoned().get_mut(index)?.take()
    }
}

fn input_bytes(requests: &[QueuedRequest]) -> usize {
    requests.iter().map(|queued| queued.pending.request.input_bytes()).sum()
}
