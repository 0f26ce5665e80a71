//! One model version that is ready, as requests use it.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use galatea_backend::{InferTarget, InstanceSpec, Model};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_scheduler::{QueueScheduler, Scheduler};
use galatea_telemetry::ModelStatistics;
use galatea_types::{InferRequest, Refused, RequestContext, RequestStart, Responder, Result};

use crate::{
    labels::Labels,
    lifecycle::Generation,
    model_id::ModelId,
    prepare,
    repository::FolderLease,
    unloader::{UnloadJob, Unloader},
    verbose,
};

/// One model version that is ready to answer.
///
/// Every request in preparation holds a reference, so when the last one is dropped no request can come in any more:
/// only then is the queue closed. That is why a reload or unload fails no request.
pub struct ServedModel {
    spec: ServedModelSpec,
    load_duration: Duration,
    ready_versions: ArcSwap<Vec<i64>>,
    current_config: ArcSwap<ModelConfig>,
}

/// What a [`ServedModel`] is made of.
pub(crate) struct ServedModelSpec {
    pub id: ModelId,
    pub config: Arc<ModelConfig>,
    /// The configuration as it was read.
    pub polled: Arc<RawModelConfig>,
    pub version: i64,
    pub generation: Generation,
    pub scheduler: Arc<dyn Scheduler>,
    /// Whether its responses come from the response cache, where they are there.
    pub is_cached: bool,
    /// `None` for an ensemble: the models of its steps have theirs.
    pub instances: Option<Arc<QueueScheduler>>,
    /// `None` for an ensemble.
    pub model: Option<Arc<dyn Model>>,
    pub statistics: Arc<ModelStatistics>,
    pub labels: Labels,
    pub load_started_at: Instant,
    /// Every version that was loaded together with this one.
    pub ready_versions: Vec<i64>,
    /// The model's files.
    pub lease: Arc<FolderLease>,
    pub unloader: Unloader,
}

impl ServedModel {
    pub(crate) fn new(spec: ServedModelSpec) -> Self {
        let ready_versions = ArcSwap::from_pointee(spec.ready_versions.clone());
        let current_config = ArcSwap::new(spec.config.clone());
        let load_duration = spec.statistics.clock().since(spec.load_started_at);
        Self { load_duration, ready_versions, current_config, spec }
    }

    pub(crate) fn id(&self) -> &ModelId {
        &self.spec.id
    }

    /// The configuration that holds now. It differs from [`ServedModel::config`] when the instances were changed while
    /// the version was ready, and in them only.
    pub fn current_config(&self) -> Arc<ModelConfig> {
        self.current_config.load_full()
    }

    /// The configuration as it was read from the repository, or came with the load.
    pub(crate) fn polled(&self) -> &RawModelConfig {
        &self.spec.polled
    }

    /// Whether its responses come from the response cache, where they are there.
    pub(crate) fn is_cached(&self) -> bool {
        self.spec.is_cached
    }

    /// The folder of its files, which is there for as long as this is.
    pub(crate) fn folder(&self) -> &Path {
        self.spec.lease.path()
    }

    /// The instances there are; none for an ensemble.
    pub(crate) fn instances(&self) -> Vec<InstanceSpec> {
        self.spec.instances.as_ref().map(|queue| queue.instances()).unwrap_or_default()
    }

    /// Whether it can have these instances without being loaded again.
    pub(crate) fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.spec.model.as_ref().is_some_and(|model| model.can_have(instances))
    }

    /// Adds and removes instances while requests run. `config`: with the groups of those there are then.
    ///
    /// # Errors
    /// The first error of a new instance: nothing has changed then.
    pub(crate) fn change_instances(
        &self,
        config: &Arc<ModelConfig>,
        added: Vec<InstanceSpec>,
        removed: &[usize],
    ) -> Result<()> {
        if let Some(queue) = &self.spec.instances {
            queue.change_instances(added, removed)?;
        }
        self.current_config.store(config.clone());
        Ok(())
    }

    /// The checked configuration it was loaded with, which requests are checked by.
    pub fn config(&self) -> &ModelConfig {
        &self.spec.config
    }

    pub(crate) fn shared_config(&self) -> Arc<ModelConfig> {
        self.spec.config.clone()
    }

    /// Its version number.
    pub fn version(&self) -> i64 {
        self.spec.version
    }

    /// Every version of this model that is ready, ascending.
    pub fn ready_versions(&self) -> Arc<Vec<i64>> {
        self.ready_versions.load_full()
    }

    /// Versions were loaded or unloaded beside this one.
    pub(crate) fn set_ready_versions(&self, versions: &[i64]) {
        self.ready_versions.store(Arc::new(versions.to_vec()));
    }

    /// The repository it is from, where several may hold models of one name; else empty.
    pub fn namespace(&self) -> &str {
        &self.spec.id.namespace
    }

    /// Requests queued and executing.
    pub fn in_flight(&self) -> usize {
        self.spec.scheduler.in_flight()
    }

    /// How many instances there are and how many of them work; `None` for an ensemble.
    pub fn instance_counts(&self) -> Option<(usize, usize)> {
        self.spec.instances.as_ref().map(|queue| queue.instance_counts())
    }

    /// How much of what its instances can do was asked of them in the last second: [`QueueScheduler::load`]. `None` for an
    /// ensemble, whose requests are at work in the models of its steps.
    pub fn load(&self, now: Instant) -> Option<f64> {
        self.spec.instances.as_ref().map(|queue| queue.load(now))
    }

    /// How long batches wait, where the model leaves that to the server.
    pub(crate) fn learned_batch_delay(&self) -> Option<Duration> {
        self.spec.instances.as_ref().and_then(|queue| queue.learned_batch_delay())
    }

    pub(crate) fn sample_load(&self, now: Instant) {
        if let Some(queue) = &self.spec.instances {
            queue.sample_load(now);
        }
    }

    pub(crate) fn release_abandoned(&self) -> usize {
        self.spec.scheduler.release_abandoned()
    }

    /// Waits until no request is queued or executing; false when `deadline` passes first.
    pub(crate) fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.spec.scheduler.wait_until_idle(deadline)
    }

    pub(crate) fn generation(&self) -> Generation {
        self.spec.generation
    }

    /// What is counted of it.
    pub fn statistics(&self) -> &ModelStatistics {
        &self.spec.statistics
    }

    /// How long it took to load.
    pub fn load_duration(&self) -> Duration {
        self.load_duration
    }

    /// The class label of an output, when the model, or the step of an ensemble that makes it, has a label file for it.
    pub fn label(&self, output: &str, class: usize) -> Option<&str> {
        self.spec.labels.get(output)?.get(class)
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.spec.labels
    }

    /// Whether a request would be executed now: an instance works. The model's own check is
    /// [`ServedModel::query_readiness`].
    pub fn is_ready(&self) -> bool {
        self.spec.instances.as_ref().is_none_or(|queue| queue.has_working_instance())
    }

    /// No request finds it any more: only those that are on their way come.
    pub(crate) fn expect_no_more(&self) {
        self.spec.scheduler.expect_no_more();
    }

    /// Whether the model checks its readiness itself.
    pub fn has_readiness_check(&self) -> bool {
        self.spec.model.as_ref().is_some_and(|model| model.has_readiness_check())
    }

    /// Whether the model is ready, by its own check too if it has one. Blocks until that has answered: not for a
    /// front end's threads.
    pub fn query_readiness(&self) -> bool {
        let has_passed = |model: &Arc<dyn Model>| !model.has_readiness_check() || model.is_ready();
        self.is_ready() && self.spec.model.as_ref().is_none_or(has_passed)
    }

    /// Checks the request against the configuration and hands it to the scheduler. Never blocks. What became
    /// of the request comes through `responder`.
    ///
    /// # Errors
    /// [`Refused`] when nothing will be executed: the request does not fit the model, or its queue is full
    /// or closed.
    pub fn infer(
        &self,
        request: InferRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let (version, origin) = (self.spec.version, &context.origin);
        context.observers.start(&RequestStart { request: &request, version, origin });
        match prepare::prepare(request, &self.spec.config) {
            Ok(request) => {
                verbose::prepared(&request, self.spec.version);
                self.spec.scheduler.submit(request, context, responder)
            }
            Err(error) => {
                context.finish(self.spec.statistics.clock().now());
                Err(Refused::new(error, responder))
            }
        }
    }
}

/// How an ensemble sends requests to the models of its steps: it holds on to them, so none of its requests
/// looks a model up.
impl InferTarget for ServedModel {
    fn infer(
        &self,
        request: InferRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        ServedModel::infer(self, request, context, responder)
    }

    fn is_decoupled(&self, _: &str, _: Option<i64>) -> Result<bool> {
        Ok(self.spec.config.is_decoupled())
    }
}

impl Drop for ServedModel {
    fn drop(&mut self) {
        let spec = &mut self.spec;
        if let Some(model) = &spec.model {
            model.prepare_to_leave();
        }
        // Without these the scheduler's reference to the model, and the unloader's to the scheduler, are the last.
        spec.model = None;
        spec.instances = None;
        spec.unloader.unload(UnloadJob {
            model: spec.id.clone(),
            version: spec.version,
            generation: spec.generation,
            scheduler: spec.scheduler.clone(),
            lease: spec.lease.clone(),
        });
    }
}
