//! Executes requests on the thread that brings them, if waking another thread would cost more.
//!
//! A connection's thread that adds a request to an idle model takes the executor of the sleeping instance. After its other
//! connections have had their turn, it executes all requests that wait by then ([`late_work`]). This is only for models
//! that just compute, while their executions are short ([`Pace`]), and for a short time at once. The instance's thread
//! executes the rest.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{InstanceSpec, Model};
use galatea_config::{InstanceKind, ModelConfig, Scheduling};
use galatea_types::{InferRequest, late_work, late_work::LateWork};

use crate::{
    ExecutionRules,
    instance::{ExecutionPace, Executor, Executors, ModelContext, Responses},
    request_queue::{RequestQueue, SubmitterRole, Work},
};

/// The time that a thread executes at once, excluding the last execution. Its connections wait meanwhile.
const LIMIT: Duration = Duration::from_micros(200);

/// Returns the pace of a model whose requests may be executed by the thread that brings them, `None` for others.
pub(super) fn pace(
    config: &ModelConfig,
    model: &dyn Model,
    execution: &ExecutionRules,
    instances: &[InstanceSpec],
    now: Instant,
) -> Option<ExecutionPace> {
    let only_computes = model.computes_on_any_thread()
        && !config.is_decoupled()
        && config.instance_groups().iter().all(|group| group.kind == InstanceKind::Cpu);
    let takes_at_once = match config.scheduling() {
        Scheduling::Direct => true,
        Scheduling::Dynamic(batching) => {
            batching.max_queue_delay.is_zero() && !batching.learns_delay
        }
        Scheduling::Sequence(_) | Scheduling::Ensemble(_) => false,
    };
    // Connection threads have no permits and no placement of an instance.
    let is_free = execution.rate_limiter.is_none()
        && instances.iter().all(|spec| execution.placement(config, spec).is_default());
    (only_computes && takes_at_once && is_free).then(|| ExecutionPace::new(now))
}

/// Executes the requests of a model on the threads that bring them.
pub(super) struct InPlaceExecution {
    pub queue: Arc<RequestQueue>,
    pub responses: Responses,
    pub executors: Arc<Executors>,
    pub context: Arc<ModelContext>,
}

impl InPlaceExecution {
    /// Returns what the thread that brings this request may do for it.
    pub fn caller(self: &Arc<Self>, request: &InferRequest, now: Instant) -> SubmitterRole {
        let Some(pace) = &self.context.pace else { return SubmitterRole::Leaves };
        if !late_work::is_served() || !pace.is_quick(request.input_bytes(), now) {
            SubmitterRole::Leaves
        } else if late_work::is_left(self) {
            SubmitterRole::HasTurn
        } else {
            SubmitterRole::Executes
        }
    }

    /// Executes waiting requests on this thread in place of the instance's thread, after its other tasks have had their turn.
    pub fn execute_later(self: &Arc<Self>, instance: usize) {
        late_work::run_later(self.clone(), instance);
    }
}

impl LateWork for InPlaceExecution {
    fn run(&self, instance: usize) {
        let Some(executor) = self.executors.take(instance) else {
            // This never happens: an executor is left before its thread sleeps. The thread reports the error.
            return self.queue.end_turn(instance, 0);
        };
        let mut turn = InPlaceTurn { owner: self, instance, executor: Some(executor), done: 0 };
        turn.execute_until(self.context.clock.now() + LIMIT);
    }

    fn abandon(&self, instance: usize) {
        self.queue.end_turn(instance, 0);
    }
}

/// A turn of this thread in place of an instance's thread, until it is dropped.
struct InPlaceTurn<'a> {
    owner: &'a InPlaceExecution,
    instance: usize,
    /// Given back at the end.
    executor: Option<Box<Executor>>,
    /// The number of finished requests that the queue has not been told of.
    done: usize,
}

impl InPlaceTurn<'_> {
    fn execute_until(&mut self, end: Instant) {
        let InPlaceExecution { queue, responses, .. } = self.owner;
        let Some(executor) = &mut self.executor else { return };
        while let Some(work) = queue.pull_in_place(self.instance, std::mem::take(&mut self.done)) {
            match work {
                Work::Batch(requests) => {
                    responses.accounting.statistics.record_execution_in_place();
                    self.done = executor.execute_batch(requests);
                    if executor.busy_until >= end {
                        return;
                    }
                }
                Work::Dropped(dropped) => {
                    self.done = dropped.len();
                    responses.answer_dropped(dropped);
                }
                Work::Steps(_) | Work::Restart(_) | Work::Retire | Work::End => return,
            }
        }
    }
}

impl Drop for InPlaceTurn<'_> {
    fn drop(&mut self) {
        if let Some(executor) = self.executor.take() {
            executor.rest();
            self.owner.executors.leave(self.instance, executor);
        }
        self.owner.queue.end_turn(self.instance, self.done);
    }
}
