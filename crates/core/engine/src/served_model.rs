//! A ready model version, as requests use it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use galatea_backend::{InferTarget, Model};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_scheduler::{Admission, QueueScheduler, Scheduler};
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

/// A ready model version.
///
/// Every request in preparation holds a reference. When the last one is dropped, no request can come in any more, and only
/// then is the queue closed. So a reload or unload fails no request.
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
    /// True if its responses come from the response cache, if they are in it.
    pub(crate) is_cached: bool,
    /// Refuses requests in an overload, if the operator wants that.
    pub(crate) admission: Option<Arc<Admission>>,
    /// `None` for an ensemble: the models of its steps have instances.
    pub(crate) instances: Option<Arc<QueueScheduler>>,
    /// `None` for an ensemble.
    pub(crate) model: Option<Arc<dyn Model>>,
    /// See [`ServedModel::library`].
    pub(crate) library: Option<PathBuf>,
    pub(crate) statistics: Arc<ModelStatistics>,
    pub(crate) labels: Labels,
    pub(crate) load_duration: Duration,
    /// The model's files, which exist as long as this does.
    pub(crate) lease: Arc<FolderLease>,
    pub(crate) unloader: Unloader,
}

impl ServedModel {
    /// Returns the present configuration. It differs from [`ServedModel::config`] only in the instances, if
    /// they were changed while the version was ready.
    pub fn current_config(&self) -> Arc<ModelConfig> {
        self.current_config.load_full()
    }

    /// Returns the checked configuration of the load, which requests are checked against.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the library made for Triton or the Python code that runs it, if it is none of this server's own backends.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_deref()
    }

    /// Returns its version number.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Returns every ready version of this model, ascending.
    pub fn ready_versions(&self) -> Arc<Vec<i64>> {
        self.ready_versions.load_full()
    }

    /// Returns its repository, if several may have models of one name; else an empty text.
    pub fn namespace(&self) -> &str {
        &self.id.namespace
    }

    /// Returns the number of requests queued and executing.
    pub fn in_flight(&self) -> usize {
        self.scheduler.in_flight()
    }

    /// Returns the number of instances and of working ones; `None` for an ensemble.
    pub fn instance_counts(&self) -> Option<(usize, usize)> {
        self.instances.as_ref().map(|queue| queue.instance_counts())
    }

    /// Returns the load of its instances over the last second: [`QueueScheduler::load`]. `None` for an
    /// ensemble, whose requests are executed by the models of its steps.
    pub fn load(&self, now: Instant) -> Option<f64> {
        self.instances.as_ref().map(|queue| queue.load(now))
    }

    /// Returns the limit of requests in progress in an overload, with admission.
    pub fn admission_limit(&self) -> Option<u32> {
        self.admission.as_ref().map(|admission| admission.limit())
    }

    /// Returns true if requests may be refused because of their deadlines.
    pub(crate) fn has_admission(&self) -> bool {
        self.admission.is_some()
    }

    /// Refuses a request before it is decoded, if its model has no time for it. One that may be in the response cache is not
    /// refused here.
    pub(crate) fn check_admission(&self, deadline: Option<Instant>) -> Result<()> {
        match &self.admission {
            Some(admission) if !self.is_cached => admission.check_early(deadline),
            _ => Ok(()),
        }
    }

    /// Returns its statistics.
    pub fn statistics(&self) -> &ModelStatistics {
        &self.statistics
    }

    /// Returns the time that its load took.
    pub fn load_duration(&self) -> Duration {
        self.load_duration
    }

    /// Returns the class label of an output, if the model or the step that makes the output has a label file for it.
    pub fn label(&self, output: &str, class: usize) -> Option<&str> {
        self.labels.get(output)?.get(class)
    }

    /// Returns true if a request would be executed now, because an instance works. [`ServedModel::query_readiness`] runs the
    /// model's own check.
    pub fn is_ready(&self) -> bool {
        self.instances.as_ref().is_none_or(|queue| queue.has_working_instance())
    }

    /// Returns true if the model checks its readiness itself.
    pub fn has_readiness_check(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.has_readiness_check())
    }

    /// Returns true if the model is ready, also by its own check if it has one. Blocks until that has answered:
    /// not for threads of a front end.
    pub fn query_readiness(&self) -> bool {
        let has_passed = |model: &Arc<dyn Model>| !model.has_readiness_check() || model.is_ready();
        self.is_ready() && self.model.as_ref().is_none_or(has_passed)
    }

    /// Checks the request against the configuration and passes it to the scheduler. Never blocks. The responses come through
    /// `responder`.
    ///
    /// # Errors
    /// [`Refused`] if nothing will be executed: the request does not fit the model, or its queue is full or closed.
    pub fn infer(
        &self,
        request: InferRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let (version, origin) = (self.version, &context.origin);
        context.observers.start(&RequestStart { request: &request, version, origin });
        let responder = context.observers.watch(responder);
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

/// Sends an ensemble's requests to the models of its steps. The ensemble holds these models, so its requests need no look-up.
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
        // Without these, the scheduler has the last reference to the model, and the unloader to the scheduler.
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

/// Logs a valid request: level 2 its result, level 3 also the shapes of its inputs; no level logs their content.
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
