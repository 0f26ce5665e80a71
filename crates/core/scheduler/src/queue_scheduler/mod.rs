//! Models with instances of their own: requests are queued, and instance threads pull them.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use galatea_backend::{InstanceSpec, Model, PendingRequest};
use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics, RefusalReason};
use galatea_types::{Error, PreparedRequest, Refused, RequestContext, Responder, Result, Tensor};

use self::{in_place::InPlaceExecution, instance_set::InstanceSet};
use crate::{
    ExecutionRules, Scheduler,
    accounting::RequestAccounting,
    completion::CompletionQueue,
    instance::{ModelContext, Responses, WarmupSample},
    load::{Capacity, LoadMeter},
    queued_request::QueuedRequest,
    request_failure::RequestFailure,
    request_queue::{Accepted, Refusal, RequestQueue},
    sequence::{SequenceInputs, TestHold},
    sync::{LockExt, Mutex, mpsc},
};

mod in_place;
mod instance_set;
mod refusals;
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
    /// Where requests are counted. Its clock tells the scheduler all times.
    pub statistics: Arc<ModelStatistics>,
    /// What each state of a sequence begins with, under the name of the model's input and with a batch dimension where the
    /// model has one, in the order of the configuration.
    pub initial_states: Vec<Tensor>,
    /// For tests.
    pub hold: TestHold,
    /// Instances are started one after the other, and not all at the same time.
    pub starts_one_by_one: bool,
    /// What each instance executes, in this order, before it is ready, also when it is started again.
    pub warm_up: Vec<WarmupSample>,
    /// What limits the executions of all models, and where threads run.
    pub execution: ExecutionRules,
}

/// The queue of one model version and the instance threads that pull from it.
///
/// Dropped, it closes: what is queued is still answered, by threads that then end on their own.
pub struct QueueScheduler {
    set: InstanceSet,
    context: Arc<ModelContext>,
    in_place: Arc<InPlaceExecution>,
    accounting: Arc<RequestAccounting>,
    /// One change of the instances at a time.
    changing: Mutex<()>,
}

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
        let instances = std::mem::take(&mut spec.instances);
        let SchedulerSpec { config, version, model, statistics, hold, execution, .. } = spec;
        let starts_one_by_one = spec.starts_one_by_one;
        execution.warn_of_missing(&config);
        let limiter = execution.rate_limiter.as_ref();
        let clock = statistics.clock().clone();
        let queue = RequestQueue::limited(&config, instances.len(), hold, limiter, clock.clone());
        let accounting =
            Arc::new(RequestAccounting::new(config.name().clone(), version, statistics));
        let order = preserves_ordering(&config).then(Arc::<CompletionQueue>::default);
        let responses =
            Responses { model_name: config.name().clone(), accounting: accounting.clone(), order };
        let may_answer_later = config.is_decoupled() || model.may_answer_later();
        let set = InstanceSet::new(queue, responses, starts_one_by_one);
        let pace = in_place::pace(&config, &*model, &execution, &instances, clock.now());
        let sequences = sequence_inputs(&config, spec.initial_states, &execution, &set.queue);
        let context = Arc::new(ModelContext {
            name: config.name().clone(),
            version,
            model,
            may_answer_later,
            has_batching: config.has_batching(),
            warm_up: spec.warm_up,
            // What is handed over ahead would be executed without a permit.
            is_pipelined: !may_answer_later
                && execution.rate_limiter.is_none()
                && matches!(config.scheduling(), Scheduling::Direct),
            config,
            execution,
            load: LoadMeter::default(),
            pace,
            sequences,
            clock,
        });
        let in_place = set.in_place(context.clone());
        let scheduler = Self { set, context, in_place, accounting, changing: Mutex::new(()) };
        scheduler.sample_load(scheduler.context.clock.now());
        scheduler.start_instances(instances).inspect_err(|_| {
            scheduler.close();
            scheduler.set.join();
        })?;
        Ok(Arc::new(scheduler))
    }

    /// Whether an instance works that would execute a request.
    pub fn has_working_instance(&self) -> bool {
        self.instance_counts().1 > 0
    }

    /// How many instances there are, and how many of them work.
    pub fn instance_counts(&self) -> (usize, usize) {
        self.set.queue.instance_counts()
    }

    /// Notes what the instances and the queue are at, for [`QueueScheduler::load`]. Meant for twice a second.
    pub fn sample_load(&self, now: Instant) {
        self.context.load.sample(now, self.accounting.statistics.pending());
    }

    /// How much of what the instances can do was asked of them in the last second, or little more: the share of the time in
    /// which those that work were executing, or answering what they had executed, and beside that the requests that waited,
    /// in rounds of executions. 1: all are at work and none waits.
    pub fn load(&self, now: Instant) -> f64 {
        let (instances, working) = self.instance_counts();
        let per_execution = match self.context.config.scheduling() {
            Scheduling::Dynamic(_) => self.context.config.max_batch_size() as usize,
            _ => 1,
        };
        let capacity = Capacity { instances, working, per_execution };
        self.context.load.load(now, self.accounting.statistics.pending(), capacity)
    }

    /// How long batches waited lately for more requests, on average, where the model leaves that to the server.
    pub fn learned_batch_delay(&self) -> Option<Duration> {
        self.set.queue.learned_delay()
    }

    /// The instances there are.
    pub fn instances(&self) -> Vec<InstanceSpec> {
        self.set.specs()
    }

    /// Adds instances, and then removes those of these numbers ([`InstanceSpec::index`]), while the others go on.
    /// Blocks until the new ones are ready and what the others have in hand is answered, but no longer than half a minute
    /// for the latter.
    ///
    /// # Errors
    /// The first error of a new instance: nothing has changed then.
    pub fn change_instances(&self, added: Vec<InstanceSpec>, removed: &[usize]) -> Result<()> {
        let _one_at_a_time = self.changing.lock_unpoisoned();
        self.set.add(&self.context, added)?;
        let deadline = self.context.clock.now() + REMOVAL_LIMIT;
        self.set.remove(removed, deadline);
        Ok(())
    }

    fn start_instances(&self, instances: Vec<InstanceSpec>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        self.set.start(&self.context, instances, &ready)?;
        drop(ready);
        // Ends when every thread has sent its outcome or ended.
        outcomes.iter().collect()
    }

    /// Counts a request that its queue did not accept, and returns the error for it.
    fn refuse(&self, pending: &mut PendingRequest, refusal: Refusal) -> Error {
        self.accounting.statistics.pending_down();
        let PendingRequest { request, context, .. } = pending;
        let reason = refusals::refusal_reason(&refusal);
        let error = refusals::failure(&self.context.name, request, refusal).into();
        let Some(reason) = reason else {
            // As any other request that does not fit the model, it is not counted.
            context.finish(self.context.clock.now());
            return error;
        };
        self.accounting.statistics.record_refusal(reason);
        let reason = match reason {
            RefusalReason::Unloading | RefusalReason::QueueFull => FailureReason::Rejected,
            _ => FailureReason::Other,
        };
        self.accounting.failed(&request.id, context, reason, &error);
        error
    }

    fn accepted(&self, accepted: Accepted) {
        let Accepted { restarts, turn } = accepted;
        if let Some(id) = restarts {
            let model = &self.context.name;
            log::warn!(
                "sequence {id} for model '{model}' has a conflict. The previous sequence did not end before this \
                 sequence start. Previous sequence will be terminated early."
            );
        }
        if let Some(instance) = turn {
            self.in_place.execute_later(instance);
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
        if self.context.has_batching && request.inputs.is_empty() {
            // Triton finds it when the model is about to run: clients get it as the model's answer.
            let error = RequestFailure::NoInputs { prefix: request.message_prefix() }.into();
            self.accounting.failed(&request.id, &mut context, FailureReason::Backend, &error);
            responder.finish(Err(error));
            return Ok(());
        }
        if let Some(sequences) = &self.context.sequences
            && let Some(failure) = refusals::unfit(sequences, &self.context.name, &request)
        {
            context.finish(self.context.clock.now());
            return Err(Refused::new(failure.into(), responder));
        }
        let mut pending = PendingRequest::new(request, context, responder);
        let now = self.context.clock.now();
        pending.context.timeline.queued = Some(now);
        let caller = self.in_place.caller(&pending.request, now);
        // Counted first: an instance may take the request before `push` returns.
        self.accounting.statistics.pending_up();
        match self.set.queue.push_by(caller, QueuedRequest::new(pending)) {
            Ok(accepted) => {
                self.accepted(accepted);
                Ok(())
            }
            Err((mut queued, refusal)) => {
                let error = self.refuse(&mut queued.pending, refusal);
                Err(Refused::new(error, queued.pending.responder))
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.set.queue.in_flight()
    }

    fn release_abandoned(&self) -> usize {
        let abandoned = self.set.queue.take_abandoned();
        let count = abandoned.len();
        self.set.responses.answer_dropped(abandoned);
        self.set.queue.finish(count);
        count
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.set.queue.wait_until_idle(deadline)
    }

    fn expect_no_more(&self) {
        self.set.queue.expect_no_more();
    }

    fn close(&self) {
        self.set.queue.close();
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        let has_ended = self.set.queue.wait_for_end(deadline);
        if has_ended {
            self.set.join();
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
    let problem = match spec.config.scheduling() {
        Scheduling::Ensemble(_) => "needs another scheduler",
        _ if spec.instances.is_empty() => "has no instances",
        // Each state needs a value that its sequences begin with.
        Scheduling::Sequence(batching) if spec.initial_states.len() != batching.states.len() => {
            "lacks initial states"
        }
        _ => return Ok(()),
    };
    Err(Error::internal(format!("model '{}' {problem}", spec.config.name())))
}

/// Whether responses leave in the order of arrival.
pub(crate) fn preserves_ordering(config: &ModelConfig) -> bool {
    matches!(config.scheduling(), Scheduling::Dynamic(d) if d.preserves_ordering)
}

fn sequence_inputs(
    config: &ModelConfig,
    initial_states: Vec<Tensor>,
    execution: &ExecutionRules,
    queue: &Arc<RequestQueue>,
) -> Option<SequenceInputs> {
    let Scheduling::Sequence(batching) = config.scheduling() else { return None };
    let memory = execution.sequence_memory.clone();
    if !batching.states.is_empty() {
        let queue: Weak<RequestQueue> = Arc::downgrade(queue);
        memory.add(config.name().clone(), queue);
    }
    Some(SequenceInputs::new(config, batching, initial_states, memory))
}
