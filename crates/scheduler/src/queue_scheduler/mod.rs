//! Models with instances of their own: requests are queued, and instance threads pull them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{InstanceSpec, Model, PendingRequest};
use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics, RefusalReason};
use galatea_types::{
    Error, InferRequest, PreparedRequest, Refused, RequestContext, Responder, Result,
};

use self::instance_set::InstanceSet;
use crate::{
    ExecutionRules, Scheduler,
    accounting::RequestAccounting,
    completion::CompletionQueue,
    instance::{ModelContext, Responses},
    load::{Capacity, LoadMeter},
    queued_request::QueuedRequest,
    request_failure::RequestFailure,
    request_queue::{Refusal, RequestQueue},
    sync::{LockExt, Mutex, mpsc},
};

mod instance_set;
#[cfg(test)]
mod tests;

/// How long a change of the instances waits for what a removed one has in hand: a stream may last for ever.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

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
    /// Instances are started one after the other, and not all at the same time.
    pub starts_one_by_one: bool,
    /// What limits the executions of all models, and where threads run.
    pub execution: ExecutionRules,
}

/// The queues of one model version and the instance threads that pull from them.
///
/// Dropped, it closes: what is queued is still answered, by threads that then end on their own.
pub struct QueueScheduler {
    /// One for each group of instances that share a queue.
    sets: Vec<InstanceSet>,
    route: Route,
    context: Arc<ModelContext>,
    has_batching: bool,
    /// Requests that one execution takes at most, if each is of one item.
    per_execution: usize,
    accounting: Arc<RequestAccounting>,
    /// One change of the instances at a time.
    changing: Mutex<()>,
}

/// Which queue takes a request, by its number.
type Route = fn(&InferRequest) -> usize;

impl QueueScheduler {
    /// Starts one thread per instance and starts each instance on its own thread, all at the same time unless told
    /// otherwise.
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
        let (starts_one_by_one, execution) = (spec.starts_one_by_one, spec.execution);
        execution.warn_of_missing(&config);
        let new_queue = |group: &Vec<InstanceSpec>| {
            let limiter = execution.rate_limiter.as_ref();
            RequestQueue::limited(&config, group.len(), hold_until_queued, limiter)
        };
        let accounting =
            Arc::new(RequestAccounting::new(config.name().clone(), version, statistics));
        let new_responses = || {
            let order = preserves_ordering(&config).then(Arc::<CompletionQueue>::default);
            Responses::new(config.name().clone(), accounting.clone(), order)
        };
        let may_answer_later = config.is_decoupled() || model.may_answer_later();
        let new_set =
            |group| InstanceSet::new(new_queue(group), new_responses(), starts_one_by_one);
        let sets = groups.iter().map(new_set).collect();
        let context = Arc::new(ModelContext {
            name: config.name().clone(),
            version,
            model,
            may_answer_later,
            // What is handed over ahead would be executed without a permit.
            is_pipelined: !may_answer_later
                && execution.rate_limiter.is_none()
                && matches!(config.scheduling(), Scheduling::Direct),
            config: config.clone(),
            execution,
            load: LoadMeter::default(),
        });
        let has_batching = config.has_batching();
        let per_execution = per_execution(&config);
        let changing = Mutex::new(());
        let scheduler =
            Self { sets, route, context, has_batching, per_execution, accounting, changing };
        scheduler.sample_load(Instant::now());
        scheduler.start_instances(groups).inspect_err(|_| scheduler.stop())?;
        Ok(Arc::new(scheduler))
    }

    /// Whether an instance works that would execute a request.
    pub fn has_working_instance(&self) -> bool {
        self.sets.iter().any(|set| set.queue.has_working_instance())
    }

    /// How many instances there are, and how many of them work.
    pub fn instance_counts(&self) -> (usize, usize) {
        let counts = self.sets.iter().map(|set| set.queue.instance_counts());
        counts.fold((0, 0), |(all, working), (a, w)| (all + a, working + w))
    }

    /// Notes what the instances and the queue are at, for [`QueueScheduler::load`]. Meant for twice a second.
    pub fn sample_load(&self, now: Instant) {
        self.context.load.sample(now, self.accounting.pending());
    }

    /// How much of what the instances can do was asked of them in the last second, or little more: the share of the time in
    /// which those that work were executing, or answering what they had executed, and beside that the requests that waited,
    /// in rounds of executions. 1: all are at work and none waits.
    pub fn load(&self, now: Instant) -> f64 {
        let (instances, working) = self.instance_counts();
        let capacity = Capacity { instances, working, per_execution: self.per_execution };
        self.context.load.load(now, self.accounting.pending(), capacity)
    }

    /// The instances there are.
    pub fn instances(&self) -> Vec<InstanceSpec> {
        self.sets.iter().flat_map(InstanceSet::specs).collect()
    }

    /// Adds instances, and then removes those of these numbers ([`InstanceSpec::index`]), while the others go on.
    /// Blocks until the new ones are ready and what the others have in hand is answered, but no longer than half a minute
    /// for the latter.
    ///
    /// # Errors
    /// The first error of a new instance: nothing has changed then.
    pub fn change_instances(&self, added: Vec<InstanceSpec>, removed: &[usize]) -> Result<()> {
        let _one_at_a_time = self.changing.lock_unpoisoned();
        if let Some(set) = self.sets.first() {
            set.add(&self.context, added)?;
        }
        let deadline = Instant::now() + REMOVAL_LIMIT;
        self.sets.iter().for_each(|set| set.remove(removed, deadline));
        Ok(())
    }

    fn start_instances(&self, groups: Vec<Vec<InstanceSpec>>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        for (set, group) in self.sets.iter().zip(groups) {
            set.start(&self.context, group, &ready)?;
        }
        drop(ready);
        // Ends when every thread has sent its outcome or ended.
        outcomes.iter().collect()
    }

    /// Counts a request that its queue did not accept, and returns the error for it.
    fn refuse(&self, pending: &mut PendingRequest, refusal: Refusal) -> Error {
        self.accounting.dequeued();
        let prefix = pending.request.message_prefix();
        let (refused, error) = match refusal {
            Refusal::Closed => (RefusalReason::Unloading, RequestFailure::Closed { prefix }),
            Refusal::Full => (RefusalReason::QueueFull, RequestFailure::QueueFull { prefix }),
            Refusal::NoWorkingInstance(reason) => {
                let model = self.context.name.to_string();
                let failure = RequestFailure::NoWorkingInstance { prefix, model, reason };
                (RefusalReason::NoInstance, failure)
            }
        };
        self.accounting.refused(refused);
        let reason = match refused {
            RefusalReason::NoInstance => FailureReason::Other,
            _ => FailureReason::Rejected,
        };
        let error = error.into();
        let PendingRequest { request, context, .. } = pending;
        self.accounting.failed(&request.id, context, reason, &error);
        error
    }

    fn queue_for(&self, request: &InferRequest) -> Option<&RequestQueue> {
        self.sets.get((self.route)(request)).map(|set| &*set.queue)
    }

    /// Counts a request that comes to no queue, and makes the error for it a refusal.
    fn fail(
        &self,
        request: &InferRequest,
        mut context: RequestContext,
        responder: Responder,
        (reason, failure): (FailureReason, RequestFailure),
    ) -> Refused {
        let error = failure.into();
        self.accounting.failed(&request.id, &mut context, reason, &error);
        Refused::new(error, responder)
    }

    fn stop(&self) {
        self.close();
        self.join();
    }

    fn join(&self) {
        self.sets.iter().for_each(InstanceSet::join);
    }
}

impl Scheduler for QueueScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        if self.has_batching && request.inputs.is_empty() {
            // Triton finds it when the model is about to run: clients get it as the model's answer.
            let failure = RequestFailure::NoInputs { prefix: request.message_prefix() };
            self.fail(&request, context, responder, (FailureReason::Backend, failure)).answer();
            return Ok(());
        }
        let Some(queue) = self.queue_for(&request) else {
            let failure = (FailureReason::Other, RequestFailure::NoQueue);
            return Err(self.fail(&request, context, responder, failure));
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
        self.sets.iter().map(|set| set.queue.in_flight()).sum()
    }

    fn release_abandoned(&self) -> usize {
        let release = |InstanceSet { queue, responses, .. }: &InstanceSet| {
            let abandoned = queue.take_abandoned();
            let count = abandoned.len();
            responses.answer_abandoned(abandoned);
            queue.finish(count);
            count
        };
        self.sets.iter().map(release).sum()
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.sets.iter().all(|set| set.queue.wait_until_idle(deadline))
    }

    fn close(&self) {
        self.sets.iter().for_each(|set| set.queue.close());
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        let has_ended = self.sets.iter().all(|set| set.queue.wait_for_end(deadline));
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

fn per_execution(config: &ModelConfig) -> usize {
    match config.scheduling() {
        Scheduling::Dynamic(_) => config.max_batch_size() as usize,
        _ => 1,
    }
}

fn preserves_ordering(config: &ModelConfig) -> bool {
    matches!(config.scheduling(), Scheduling::Dynamic(d) if d.preserves_ordering)
}
