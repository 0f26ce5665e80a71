use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use galatea_backend::InferTarget;
use galatea_config::ModelConfig;
use galatea_scheduler::Scheduler;
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, InferRequest, Refused, Responder, Result};

use crate::{lifecycle::Generation, prepare};

/// One model version that is ready to answer.
///
/// Whoever works on a request holds one of these, so the last one dropped says that nothing more can come
/// in: only then does its queue close. That is how a reload or unload fails no request.
pub struct ServedModel {
    config: Arc<ModelConfig>,
    version: i64,
    generation: Generation,
    scheduler: Arc<dyn Scheduler>,
    statistics: Arc<ModelStatistics>,
    labels: BTreeMap<String, Vec<String>>,
    load_duration: Duration,
    ready_versions: Vec<i64>,
    retired: mpsc::Sender<Retired>,
}

/// A version nobody can reach any more, on its way to be drained.
pub(crate) struct Retired {
    pub model: Arc<str>,
    pub version: i64,
    pub generation: Generation,
    pub scheduler: Arc<dyn Scheduler>,
}

/// What a [`ServedModel`] is made of.
pub(crate) struct Parts {
    pub config: Arc<ModelConfig>,
    pub version: i64,
    pub generation: Generation,
    pub scheduler: Arc<dyn Scheduler>,
    pub statistics: Arc<ModelStatistics>,
    pub labels: BTreeMap<String, Vec<String>>,
    pub load_started_at: Instant,
    pub ready_versions: Vec<i64>,
    pub retired: mpsc::Sender<Retired>,
}

impl ServedModel {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            config: parts.config,
            version: parts.version,
            generation: parts.generation,
            scheduler: parts.scheduler,
            statistics: parts.statistics,
            labels: parts.labels,
            load_duration: parts.load_started_at.elapsed(),
            ready_versions: parts.ready_versions,
            retired: parts.retired,
        }
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    pub(crate) fn shared_config(&self) -> Arc<ModelConfig> {
        self.config.clone()
    }

    pub fn version(&self) -> i64 {
        self.version
    }

    /// Every version of this model that is ready, ascending: they were loaded together and go together.
    pub fn ready_versions(&self) -> &[i64] {
        &self.ready_versions
    }

    /// Requests queued and executing.
    pub(crate) fn in_flight(&self) -> usize {
        self.scheduler.in_flight()
    }

    /// Waits until no request is queued or executing; false when `deadline` passes first.
    pub(crate) fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.scheduler.wait_until_idle(deadline)
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    pub(crate) fn statistics(&self) -> &ModelStatistics {
        &self.statistics
    }

    pub(crate) fn load_duration(&self) -> Duration {
        self.load_duration
    }

    /// The class label of an output, when the model has a label file for it.
    pub fn label(&self, output: &str, class: usize) -> Option<&str> {
        self.labels.get(output)?.get(class).map(String::as_str)
    }

    /// Whether a request would be executed now: an instance works. What the model itself says is asked
    /// with [`ServedModel::says_ready`].
    pub fn is_ready(&self) -> bool {
        self.scheduler.is_ready()
    }

    /// Whether the model has a say of its own in its readiness.
    pub fn has_readiness_check(&self) -> bool {
        self.scheduler.has_readiness_check()
    }

    /// The model's own say. Blocks until it has answered: not for a front end's threads.
    pub fn says_ready(&self) -> bool {
        self.scheduler.model_is_ready()
    }

    /// Checks the request against the configuration, as [`ServedModel::infer`] does first. For front ends
    /// that must tell a refused request from one that failed.
    pub fn check(&self, request: &mut InferRequest) -> Result<()> {
        prepare::prepare(request, &self.config)
    }

    /// Checks the request against the configuration and hands it to the scheduler. Never blocks. What became
    /// of the request comes through `responder`.
    ///
    /// # Errors
    /// [`Refused`] when nothing will be executed: the request does not fit the model, or its queue is full
    /// or closed.
    pub fn infer(&self, mut request: InferRequest, responder: Responder) -> Result<(), Refused> {
        match prepare::prepare(&mut request, &self.config) {
            Ok(()) => self.scheduler.submit(request, responder),
            Err(error) => Err(Refused::new(error, responder)),
        }
    }
}

/// How an ensemble sends requests to the models of its steps: it holds on to them, so none of its requests
/// looks a model up.
impl InferTarget for ServedModel {
    fn infer(&self, request: InferRequest, responder: Responder) -> Result<(), Refused> {
        ServedModel::infer(self, request, responder)
    }

    fn is_decoupled(&self, _: &str, _: Option<i64>) -> Result<bool> {
        Ok(self.config.is_decoupled())
    }
}

impl Drop for ServedModel {
    fn drop(&mut self) {
        let retired = Retired {
            model: self.config.name().clone(),
            version: self.version,
            generation: self.generation,
            scheduler: self.scheduler.clone(),
        };
        // Without a reaper the engine itself is gone; closing here lets the instance threads end.
        if let Err(mpsc::SendError(retired)) = self.retired.send(retired) {
            retired.scheduler.close();
        }
    }
}

/// Reads the label files the configuration names: one label per line.
pub(crate) fn read_labels(
    config: &ModelConfig,
    model_dir: &Path,
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut labels = BTreeMap::new();
    for output in config.outputs() {
        let Some(file) = &output.label_filename else { continue };
        let path = model_dir.join(file);
        let text = fs::read_to_string(&path).map_err(|e| {
            let (output, path) = (&output.name, path.display());
            Error::internal(format!("failed to read label file {path} of output '{output}': {e}"))
        })?;
        labels.insert(
            output.name.to_string(),
            text.lines().map(|l| l.trim_end().to_owned()).collect(),
        );
    }
    Ok(labels)
}
