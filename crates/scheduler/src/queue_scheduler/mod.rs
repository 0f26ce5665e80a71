//! Models with instances of their own: requests are queued, and instance threads pull them.

use std::{sync::Arc, time::Instant};

use galatea_backend::{InstanceSpec, Model, PendingRequest};
use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{
    Error, InferRequest, PreparedRequest, Refused, RequestContext, Responder, Result,
};

use crate::{
    InstanceReadiness, Scheduler,
    accounting::RequestAccounting,
    completion::CompletionQueue,
    instance::{self, InstanceError, InstanceSlot, ModelContext, Responses},
    queued_request::QueuedRequest,
    request_failure::RequestFailure,
    request_queue::{Refusal, RequestQueue},
    sync::{Builder, JoinHandle, LockExt, Mutex, mpsc},
};

#[cfg(test)]
mod tests;

/// What a queue and its instances are made for.
pub struct SchedulerSpec {
    /// Of the model.
    pub config: Arc<ModelConfig>,
    /// Of the model.
    pub version: i64,
    /// What makes the instances.
    pub model: Arc<dyn Model>,
    /// One thread is started for each.
    pub instances: Vec<InstanceSpec>,
    /// Where requests are counted.
    pub statistics: Arc<ModelStatistics>,
    /// Nothing is executed until this many requests are queued; 0 turns it off.
    pub hold_until_queued: usize,
}

/// The queues of one model version and the instance threads that pull from them.
///
/// Dropped, it closes: what is queued is still answered, by threads that then end on their own.
pub struct QueueScheduler {
    /// One for each group of instances that share a queue.
    queues: Vec<Arc<RequestQueue>>,
    /// What answers the requests of each queue.
    responses: Vec<Responses>,
    route: Route,
    model_name: Arc<str>,
    accounting: Arc<RequestAccounting>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Which queue takes a request, by its number.
type Route = fn(&InferRequest) -> usize;

impl QueueScheduler {
    /// Starts one thread per instance and starts each instance on its own thread, all at the same time.
    ///
    /// Blocks until all are ready.
    ///
    /// # Errors
    /// The first error of an instance, when all threads have ended again; `Unsupported` for a kind of scheduling
    /// that has no queue like this; `Internal` for a model without instances.
    pub fn start(mut spec: SchedulerSpec) -> Result<Arc<QueueScheduler>> {
        check(&spec)?;
        let all = std::mem::take(&mut spec.instances);
        Self::start_groups(spec, vec![all], |_| 0)
    }

    /// Starts groups of instances, each with a queue of its own.
    fn start_groups(
        spec: SchedulerSpec,
        groups: Vec<Vec<InstanceSpec>>,
        route: Route,
    ) -> Result<Arc<QueueScheduler>> {
        let SchedulerSpec { config, version, model, statistics, hold_until_queued, .. } = spec;
        let new_queue = |group: &Vec<InstanceSpec>| {
            Arc::new(RequestQueue::new(&config, group.len(), hold_until_queued))
        };
        let accounting =
            Arc::new(RequestAccounting::new(config.name().clone(), version, statistics));
        let new_responses = |_| {
            let order = preserves_ordering(&config).then(Arc::<CompletionQueue>::default);
            Responses::new(config.name().clone(), accounting.clone(), order)
        };
        let may_answer_later = config.is_decoupled() || model.may_answer_later();
        let scheduler = Self {
            queues: groups.iter().map(new_queue).collect(),
            responses: groups.iter().map(new_responses).collect(),
            route,
            model_name: config.name().clone(),
            accounting,
            threads: Mutex::new(Vec::new()),
        };
        let context = Arc::new(ModelContext {
            name: config.name().clone(),
            version,
            model,
            may_answer_later,
            is_pipelined: !may_answer_later && matches!(config.scheduling(), Scheduling::Direct),
        });
        let slots = scheduler.slots(groups);
        scheduler.start_threads(&context, slots).inspect_err(|_| scheduler.stop())?;
        Ok(Arc::new(scheduler))
    }

    /// Reports whether instances work, now and later.
    pub fn readiness(&self) -> InstanceReadiness {
        InstanceReadiness::new(self.queues.clone())
    }

    fn slots(&self, groups: Vec<Vec<InstanceSpec>>) -> Vec<InstanceSlot> {
        let queues = self.queues.iter().zip(&self.responses);
        let slots_of = |((queue, responses), group): ((&Arc<RequestQueue>, &Responses), Vec<_>)| {
            let new_slot = |(index, spec)| InstanceSlot {
                queue: queue.clone(),
                responses: responses.clone(),
                index,
                spec,
            };
            group.into_iter().enumerate().map(new_slot).collect::<Vec<_>>()
        };
        queues.zip(groups).flat_map(slots_of).collect()
    }

    fn start_threads(&self, context: &Arc<ModelContext>, slots: Vec<InstanceSlot>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        let mut slots = slots.into_iter();
        while let Some(slot) = slots.next() {
            let (context, ready, queue) = (context.clone(), ready.clone(), slot.queue.clone());
            let name = slot.spec.name.clone();
            let thread = Builder::new().name(name.clone());
            match thread.spawn(move || instance::run(&context, slot, ready)) {
                Ok(thread) => self.threads.lock_unpoisoned().push(thread),
                Err(source) => {
                    queue.thread_ended();
                    slots.for_each(|slot| slot.queue.thread_ended());
                    return Err(InstanceError::NoThread { instance: name, source }.into());
                }
            }
        }
        drop(ready);
        // Ends when every thread has sent its outcome or ended.
        outcomes.iter().collect()
    }

    /// Counts a request that its queue did not accept, and returns the error for it.
    fn refuse(&self, pending: &mut PendingRequest, refusal: Refusal) -> Error {
        self.accounting.dequeued();
        let prefix = pending.request.message_prefix();
        let (reason, error) = match refusal {
            Refusal::Closed => (FailureReason::Rejected, RequestFailure::Closed { prefix }),
            Refusal::Full => (FailureReason::Rejected, RequestFailure::QueueFull { prefix }),
            Refusal::NoWorkingInstance(reason) => {
                let model = self.model_name.to_string();
                let failure = RequestFailure::NoWorkingInstance { prefix, model, reason };
                (FailureReason::Other, failure)
            }
        };
        let error = error.into();
        let PendingRequest { request, context, .. } = pending;
        self.accounting.failed(&request.id, context, reason, &error);
        error
    }

    fn queue_for(&self, request: &InferRequest) -> Option<&RequestQueue> {
        self.queues.get((self.route)(request)).map(|queue| &**queue)
    }

    fn stop(&self) {
        self.close();
        self.join();
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock_unpoisoned());
        for thread in threads {
            // Its panics are caught and logged where they happen.
            let _ = thread.join();
        }
    }
}

impl Scheduler for QueueScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let Some(queue) = self.queue_for(&request) else {
            let error = RequestFailure::NoQueue.into();
            self.accounting.failed(&request.id, &mut context, FailureReason::Other, &error);
            return Err(Refused::new(error, responder));
        };
        let mut pending = PendingRequest::new(request, context, responder);
        pending.context.timeline.queued = Some(Instant::now());
        // Counted first: an instance may take the request before `push` returns.
        self.accounting.queued();
        queue.push(QueuedRequest::new(pending)).map_err(|(mut queued, refusal)| {
            let error = self.refuse(&mut queued.pending, refusal);
            Refused::new(error, queued.pending.responder)
        })
    }

    fn in_flight(&self) -> usize {
        self.queues.iter().map(|queue| queue.in_flight()).sum()
    }

    fn release_abandoned(&self) -> usize {
        let release = |(queue, responses): (&Arc<RequestQueue>, &Responses)| {
            let abandoned = queue.take_abandoned();
            let count = abandoned.len();
            responses.answer_abandoned(abandoned);
            queue.finish(count);
            count
        };
        self.queues.iter().zip(&self.responses).map(release).sum()
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.queues.iter().all(|queue| queue.wait_until_idle(deadline))
    }

    fn close(&self) {
        self.queues.iter().for_each(|queue| queue.close());
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        let has_ended = self.queues.iter().all(|queue| queue.wait_for_end(deadline));
        if has_ended {
            self.join();
        }
        has_ended
    }
}

impl Drop for QueueScheduler {
    fn drop(&mut self) {
        self.close();
    }
}

fn check(spec: &SchedulerSpec) -> Result<()> {
    let config = &spec.config;
    config.check_support()?;
    let name = config.name();
    match config.scheduling() {
        Scheduling::Direct | Scheduling::Dynamic(_) if spec.instances.is_empty() => {
            Err(Error::internal(format!("model '{name}' has no instances")))
        }
        Scheduling::Direct | Scheduling::Dynamic(_) => Ok(()),
        Scheduling::Sequence(_) | Scheduling::Ensemble(_) => {
            Err(Error::internal(format!("model '{name}' needs another scheduler")))
        }
    }
}

fn preserves_ordering(config: &ModelConfig) -> bool {
    matches!(config.scheduling(), Scheduling::Dynamic(d) if d.preserves_ordering)
}
