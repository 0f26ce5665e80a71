//! The scheduler of models with instances: it queues requests, and instance threads pull them.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use galatea_backend::{InstanceSpec, Model, PendingRequest};
use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics, RefusalReason};
use galatea_types::{Error, PreparedRequest, Refused, RequestContext, Responder, Result, Tensor};

use self::{in_place_execution::InPlaceExecution, instance_set::InstanceSet};
use crate::{
    ExecutionRules, Scheduler,
    accounting::RequestAccounting,
    completion::CompletionQueue,
    instance::{ModelContext, Responses, WarmupSample},
    load::{Capacity, LoadMeter},
    model_shape::ModelShape,
    queued_request::QueuedRequest,
    request_failure::RequestFailure,
    request_queue::{AcceptedRequest, Refusal, RequestQueue},
    sequence::{SequenceInputs, TestHold},
    sync::{LockExt, Mutex, mpsc},
};

mod in_place_execution;
mod instance_set;
mod refusals;
#[cfg(test)]
mod tests;

/// The longest wait for requests in progress on removed instances: a stream may last for ever.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// The model, instances and rules of a [`QueueScheduler`].
pub struct SchedulerSpec {
    /// The configuration of the model.
    pub config: Arc<ModelConfig>,
    /// The version of the model.
    pub version: i64,
    /// Creates the instances.
    pub model: Arc<dyn Model>,
    /// The instances; one thread is started for each.
    pub instances: Vec<InstanceSpec>,
    /// The statistics in which requests are counted. All times of the scheduler are read from its clock.
    pub statistics: Arc<ModelStatistics>,
    /// The initial value of each state of a sequence, in the order of the configuration. Each is named as the model's input and
    /// has a batch dimension if the model has one.
    pub initial_states: Vec<Tensor>,
    /// Holds requests back, for tests.
    pub hold: TestHold,
    /// If true, instances are started one after the other instead of all at once.
    pub starts_one_by_one: bool,
    /// The samples that each instance executes in this order before it is ready, also after a restart.
    pub warm_up: Vec<WarmupSample>,
    /// The limits on executions of all models, and the placement of threads.
    pub execution: ExecutionRules,
}

/// The queue of one model version and the instance threads that pull from it.
///
/// Dropping it closes the queue: queued requests are still answered, and the threads then end on their own.
pub struct QueueScheduler {
    set: InstanceSet,
    context: Arc<ModelContext>,
    in_place: Arc<InPlaceExecution>,
    accounting: Arc<RequestAccounting>,
    /// Locked by a change of the instances, so that there is one at a time.
    changing: Mutex<()>,
}

impl QueueScheduler {
    /// Starts a thread for each instance, which starts the instance. All start at the same time unless
    /// `starts_one_by_one` is set.
    ///
    /// Blocks until all are ready.
    ///
    /// # Errors
    /// The first error of an instance, after all threads have ended again; `Unsupported` for a kind of scheduling without
    /// such a queue; `Internal` for a model without instances.
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
        let pace = in_place_execution::pace(&config, &*model, &execution, &instances, clock.now());
        let sequences = sequence_inputs(&config, spec.initial_states, &execution, &set.queue);
        let context = Arc::new(ModelContext {
            name: config.name().clone(),
            version,
            model,
            may_answer_later,
            has_batching: config.has_batching(),
            warm_up: spec.warm_up,
            // Requests handed over early would be executed without a permit.
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

    /// Returns true if some instance works.
    pub fn has_working_instance(&self) -> bool {
        self.instance_counts().1 > 0
    }

    /// Returns the number of instances and the number of working ones.
    pub fn instance_counts(&self) -> (usize, usize) {
        self.set.queue.instance_counts()
    }

    /// Records the state of the instances and the queue for [`QueueScheduler::load`]. Intended for twice a second.
    pub fn sample_load(&self, now: Instant) {
        self.context.load.sample(now, self.accounting.statistics.pending());
    }

    /// Returns the load over the last second or a little more. It is the share of time in which working
    /// instances were executing or answering, plus the waiting requests, counted in rounds of executions. 1
    /// means that all instances are busy and no request waits.
    pub fn load(&self, now: Instant) -> f64 {
        let (instances, working) = self.instance_counts();
        let per_execution = match self.context.config.scheduling() {
            Scheduling::Dynamic(_) => self.context.config.max_batch_size() as usize,
            _ => 1,
        };
        let capacity = Capacity { instances, working, per_execution };
        self.context.load.load(now, self.accounting.statistics.pending(), capacity)
    }

    /// Returns the mean wait of recent batches, if the server chooses the delay.
    pub fn learned_batch_delay(&self) -> Option<Duration> {
        self.set.queue.learned_delay()
    }

    /// Returns the current instances.
    pub fn instances(&self) -> Vec<InstanceSpec> {
        self.set.specs()
    }

    /// Adds instances and then removes those with these numbers ([`InstanceSpec::index`]), while the others
    /// continue. Blocks until the new ones are ready and requests in progress on the removed ones are answered,
    /// for the latter at most half a minute.
    ///
    /// # Errors
    /// The first error of a new instance; then nothing has changed.
    pub fn change_instances(&self, added: Vec<InstanceSpec>, removed: &[usize]) -> Result<()> {
        let _one_at_a_time = self.changing.lock_unpoisoned();
        self.set.add(&self.context, added)?;
        let deadline = self.context.clock.now() + REMOVAL_LIMIT;
        self.set.remove(removed, deadline);
        Ok(())
    }

    /// Returns the requests that it can execute at once.
    pub(crate) fn shape(&self) -> ModelShape {
        let (_, working) = self.instance_counts();
        let per_execution = match self.context.config.scheduling() {
            Scheduling::Direct | Scheduling::Ensemble(_) => 1,
            Scheduling::Dynamic(_) | Scheduling::Sequence(_) => {
                self.context.config.max_batch_size()
            }
        };
        let instances = u32::try_from(working).unwrap_or(u32::MAX);
        ModelShape { instances, per_execution, is_open: self.context.may_answer_later }
    }

    fn start_instances(&self, instances: Vec<InstanceSpec>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        self.set.start(&self.context, instances, &ready)?;
        drop(ready);
        // Ends when every thread has sent its result or ended.
        outcomes.iter().collect()
    }

    /// Counts a request that its queue did not accept, and returns the error for it.
    fn refuse(&self, pending: &mut PendingRequest, refusal: Refusal) -> Error {
        self.accounting.statistics.pending_down();
        let PendingRequest { request, context, .. } = pending;
        context.forgo_place();
        let reason = refusals::refusal_reason(&refusal);
        let error = refusals::failure(&self.context.name, request, refusal).into();
        let Some(reason) = reason else {
            // Like any other request that does not fit the model, it is not counted.
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

    fn accepted(&self, accepted: AcceptedRequest) {
        let AcceptedRequest { restarts, turn } = accepted;
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
            // Triton detects this when the model is about to run, so clients get it as the model's answer.
            let error = RequestFailure::NoInputs { prefix: request.message_prefix() }.into();
            context.forgo_place();
            self.accounting.failed(&request.id, &mut context, FailureReason::Backend, &error);
            responder.finish(Err(error));
            return Ok(());
        }
        if let Some(sequences) = &self.context.sequences
            && let Some(failure) = refusals::unfit(sequences, &self.context.name, &request)
        {
            context.forgo_place();
            context.finish(self.context.clock.now());
            return Err(Refused::new(failure.into(), responder));
        }
        let mut pending = PendingRequest::new(request, context, responder);
        let now = self.context.clock.now();
        pending.context.timeline.queued = Some(now);
        let caller = self.in_place.caller(&pending.request, now);
        // Counted first, because an instance may take the request before `push_by` returns.
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
        // Each state needs an initial value.
        Scheduling::Sequence(batching) if spec.initial_states.len() != batching.states.len() => {
            "lacks initial states"
        }
        _ => return Ok(()),
    };
    Err(Error::internal(format!("model '{}' {problem}", spec.config.name())))
}

/// Returns true if responses are sent in the order of arrival.
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
