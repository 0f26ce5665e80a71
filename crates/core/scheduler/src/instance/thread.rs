//! The thread of one instance: it pulls batches, executes them, and restarts a broken instance.

use std::{cell::Cell, sync::Arc, time::Duration};

use galatea_backend::ModelInstance;
use galatea_types::{DebugEvent, Error, Result};

use super::{
    context::ModelContext,
    executor::{Executor, Executors},
    restart_backoff::RestartBackoff,
    slot::{InstanceSlot, discard},
    warm_up::warm_up,
};
use crate::{
    queued_request::QueuedRequest,
    request_queue::{FinishedWork, RequestQueue, Work},
    sync::mpsc,
};

/// The longest time that requests wait, unanswered, for the restart of an instance.
const MAX_WAIT_FOR_RESTART: Duration = Duration::from_secs(1);

/// Runs on the thread of one instance: starts the instance, sends the result to `ready`, and executes batches until the
/// queue is closed and empty. While it has no batch, its executor is in `executors`.
pub(crate) fn run(
    context: Arc<ModelContext>,
    slot: InstanceSlot,
    executors: &Executors,
    ready: mpsc::Sender<Result<()>>,
) {
    let queue = slot.queue.clone();
    let _end = EndOfThread(&queue, slot.index);
    let placement = context.execution.placement(&context.config, &slot.spec);
    let placed = placement.apply().map_err(|error| Error::internal(error.to_string()));
    match placed.and_then(|()| start(&slot, &context)) {
        Ok(instance) => {
            // The starter waits for every thread, so the channel is open.
            let _ = ready.send(Ok(()));
            // The starter waits until all senders are dropped.
            drop(ready);
            let backoff = RestartBackoff::new(context.clock.now());
            let executor = Executor::new(context, slot, instance);
            let thread = InstanceThread { executor, backoff, executors };
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

struct InstanceThread<'a> {
    executor: Box<Executor>,
    backoff: RestartBackoff,
    executors: &'a Executors,
}

impl InstanceThread<'_> {
    fn serve(mut self) {
        let mut done = FinishedWork::from(0);
        loop {
            let Some((work, thread)) = self.pull(done) else { return };
            self = thread;
            let executor = &mut self.executor;
            match work {
                Work::Batch(requests) => done = FinishedWork::from(executor.execute(requests)),
                Work::Steps(steps) => done = executor.execute_steps(steps),
                Work::Dropped(dropped) => {
                    done = FinishedWork::from(dropped.len());
                    executor.slot.responses.answer_dropped(dropped);
                }
                Work::Restart(reason) => {
                    executor.rest();
                    done = FinishedWork::from(0);
                    let Some(restarted) = self.restart(reason) else { return };
                    self = restarted;
                }
                Work::Retire => {
                    executor.rest();
                    executor.slot.streams.wait_until_none();
                    return discard(self.executor.instance);
                }
                Work::End => {
                    // From here on, alarms that the instance raises because it ends are ignored.
                    executor.slot.queue.instance_begins(executor.slot.index);
                    return discard(self.executor.instance);
                }
            }
        }
    }

    /// Waits for work. While the thread sleeps, its executor is in `executors`, for threads that execute their own requests.
    fn pull(self, done: FinishedWork<QueuedRequest>) -> Option<(Work<QueuedRequest>, Self)> {
        let Self { executor, backoff, executors } = self;
        let InstanceSlot { queue, index, .. } = &executor.slot;
        let (queue, index) = (queue.clone(), *index);
        let own = Cell::new(Some(executor));
        let rest = || {
            if let Some(executor) = own.take() {
                executor.rest();
                executor.report(|instance| DebugEvent::InstanceIdle { instance });
                executors.leave(index, executor);
            }
        };
        let work = queue.pull(index, done, rest);
        let executor = own.into_inner().or_else(|| executors.take(index));
        if executor.is_none() {
            log::error!(
                "internal error: instance {index} of a model disappeared while it was idle; other instances continue"
            );
        }
        Some((work, Self { executor: executor?, backoff, executors }))
    }

    /// Drops the instance and starts it again, as often as needed. Returns `None` if there is nothing left to do, because the
    /// queue was closed or the instance retired.
    fn restart(mut self, mut reason: Error) -> Option<Self> {
        let Executor { context, slot, instance, has_panicked, .. } = *self.executor;
        let (queue, spec, model) = (&slot.queue, &slot.spec, &context.name);
        discard(instance);
        // No wait after a panic: panics come no faster than requests do.
        let mut wait = match has_panicked {
            true => Duration::ZERO,
            false => self.backoff.after_break(context.clock.now()),
        };
        let mut is_given_up = false;
        loop {
            // Computed before the report, because a test may move its clock as soon as it gets that.
            let deadline = context.clock.after(wait);
            context.execution.events.report(|| DebugEvent::RestartPlanned {
                instance: context.instance_name(&spec.name),
                wait,
            });
            if wait >= MAX_WAIT_FOR_RESTART {
                give_up(&slot, &reason);
                is_given_up = true;
            }
            let is_useless = || is_given_up || queue.is_retired(slot.index) || !queue.has_queued();
            if queue.is_closed_by(slot.index, deadline) && is_useless() {
                return None;
            }
            match start(&slot, &context) {
                Ok(instance) => {
                    self.backoff.started(context.clock.now());
                    slot.responses.accounting.statistics.record_restart();
                    log::info!("instance {} of model '{model}' was restarted", spec.name);
                    context.execution.events.report(|| DebugEvent::WorkerRestarted {
                        instance: context.instance_name(&spec.name),
                    });
                    return Some(Self { executor: Executor::new(context, slot, instance), ..self });
                }
                Err(error) => reason = error,
            }
            log::error!("cannot restart instance {} of model '{model}': {reason}", spec.name);
            give_up(&slot, &reason);
            is_given_up = true;
            wait = self.backoff.after_failure();
        }
    }
}

/// Starts an instance and warms it up. Afterwards it counts as working.
fn start(slot: &InstanceSlot, context: &ModelContext) -> Result<Box<dyn ModelInstance>> {
    let mut instance = slot.new_instance(&context.name, &*context.model)?;
    if let Err(error) = warm_up(slot, context, &mut *instance) {
        discard(instance);
        return Err(error);
    }
    slot.queue.instance_started(slot.index);
    Ok(instance)
}

/// Stops requests from waiting for this instance. Answers those that wait for no other.
fn give_up(slot: &InstanceSlot, reason: &Error) {
    let unserved = slot.queue.give_up_instance(slot.index, reason);
    let count = unserved.len();
    slot.responses.answer_outage(unserved, reason);
    slot.queue.finish(count);
}
