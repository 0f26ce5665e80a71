//! One model version that is ready, as requests use it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use galatea_backend::{InferTarget, Model};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_scheduler::{QueueScheduler, Scheduler};
use galatea_telemetry::{ModelStatistics, logger::VERBOSE_3};
use galatea_types::{
    InferRequest, PreparedRequest, Refused, RequestContext, RequestStart, Responder, Result, Tensor,
};

use crate::{
    labels::Labels,
    lifecycle::Generation,
    model_id::ModelId,
    prepare,
    repository::FolderLease,
    unloader::{UnloadJob, Unloader},
};

/// One model version that is ready to answer.
///
/// Every request in preparation holds a reference, so when the last one is dropped no request can come in any more:
/// only then is the queue closed. That is why a reload or unload fails no request.
pub struct ServedModel {
    pub(crate) id: ModelId,
    pub(crate) config: Arc<ModelConfig>,
    /// See [`ServedModel::current_config`].
    pub(crate) current_config: ArcSwap<ModelConfig>,
    /// The configuration as it was read from the repository, or came with the load.
    pub(crate) polled: Arc<RawModelConfig>,
    pub(crate) version: i64,
    /// See [`ServedModel::ready_versions`].
    pub(crate) ready_versions: ArcSwap<Vec<i64>>,
    pub(crate) generation: Generation,
    pub(crate) scheduler: Arc<dyn Scheduler>,
    /// Whether its responses come from the response cache, where they are there.
    pub(crate) is_cached: bool,
    /// `None` for an ensemble: the models of its steps have theirs.
    pub(crate) instances: Option<Arc<QueueScheduler>>,
    /// `None` for an ensemble.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) statistics: Arc<ModelStatistics>,
    pub(crate) labels: Labels,
    pub(crate) load_duration: Duration,
    /// The model's files, which are there for as long as this is.
    pub(crate) lease: Arc<FolderLease>,
    pub(crate) unloader: Unloader,
}

impl ServedModel {
    /// The configuration that holds now. It differs from [`ServedModel::config`] when the instances were changed while
    /// the version was ready, and in them only.
    pub fn current_config(&self) -> Arc<ModelConfig> {
        self.current_config.load_full()
    }

    /// The checked configuration it was loaded with, which requests are checked by.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Its version number.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Every version of this model that is ready, ascending.
    pub fn ready_versions(&self) -> Arc<Vec<i64>> {
        self.ready_versions.load_full()
    }

    /// The repository it is from, where several may hold models of one name; else empty.
    pub fn namespace(&self) -> &str {
        &self.id.namespace
    }

    /// Requests queued and executing.
    pub fn in_flight(&self) -> usize {
        self.scheduler.in_flight()
    }

    /// How many instances there are and how many of them work; `None` for an ensemble.
    pub fn instance_counts(&self) -> Option<(usize, usize)> {
        self.instances.as_ref().map(|queue| queue.instance_counts())
    }

    /// How much of what its instances can do was asked of them in the last second: [`QueueScheduler::load`]. `None` for an
    /// ensemble, whose requests are at work in the models of its steps.
    pub fn load(&self, now: Instant) -> Option<f64> {
        self.instances.as_ref().map(|queue| queue.load(now))
    }

    /// What is counted of it.
    pub fn statistics(&self) -> &ModelStatistics {
        &self.statistics
    }

    /// How long it took to load.
    pub fn load_duration(&self) -> Duration {
        self.load_duration
    }

    /// The class label of an output, when the model, or the step of an ensemble that makes it, has a label file for it.
    pub fn label(&self, output: &str, class: usize) -> Option<&str> {
        self.labels.get(output)?.get(class)
    }

    /// Whether a request would be executed now: an instance works. The model's own check is
    /// [`ServedModel::query_readiness`].
    pub fn is_ready(&self) -> bool {
        self.instances.as_ref().is_none_or(|queue| queue.has_working_instance())
    }

    /// Whether the model checks its readiness itself.
    pub fn has_readiness_check(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.has_readiness_check())
    }

    /// Whether the model is ready, by its own check too if it has one. Blocks until that has answered: not for a
    /// front end's threads.
    pub fn query_readiness(&self) -> bool {
        let has_passed = |model: &Arc<dyn Model>| !model.has_readiness_check() || model.is_ready();
        self.is_ready() && self.model.as_ref().is_none_or(has_passed)
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
        let (version, origin) = (self.version, &context.origin);
        context.observers.start(&RequestStart { request: &request, version, origin });
        match prepare::prepare(request, &self.config) {
            Ok(request) => {
                log_prepared(&request, self.version);
                self.scheduler.submit(request, context, responder)
            }
            Err(error) => {
                context.finish(self.statistics.clock().now());
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
        Ok(self.config.is_decoupled())
    }
}

impl Drop for ServedModel {
    fn drop(&mut self) {
        if let Some(model) = &self.model {
            model.prepare_to_leave();
        }
        // Without these the scheduler's reference to the model, and the unloader's to the scheduler, are the last.
        self.model = None;
        self.instances = None;
        self.unloader.unload(UnloadJob {
            model: self.id.clone(),
            version: self.version,
            generation: self.generation,
            scheduler: self.scheduler.clone(),
            lease: self.lease.clone(),
        });
    }
}

/// The request fits its model. Level 2 says so, level 3 with the shapes of its inputs; what is in them no level does.
fn log_prepared(request: &PreparedRequest, version: i64) {
    let prefix = || request.message_prefix();
    log::trace!(
        "{}prepared: model: {}, requested version: {}, actual version: {version}, batch size: {}, inputs: {}, priority: \
         {}, timeout (us): {}",
        prefix(),
        request.model_name,
        request.model_version.unwrap_or(-1),
        request.batch_size(),
        request.inputs.len(),
        request.priority,
        request.timeout.unwrap_or_default().as_micros()
    );
    if !log::log_enabled!(target: VERBOSE_3, log::Level::Trace) {
        return;
    }
    for Tensor { name, data_type, shape, data, .. } in &request.inputs {
        let (prefix, size) = (prefix(), data.len());
        log::trace!(
            target: VERBOSE_3,
            "{prefix}input: {name}, type: {data_type}, shape: {shape}, {size} bytes"
        );
    }
}
