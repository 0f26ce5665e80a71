//! From a plan to running instances.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Instant,
};

use galatea_backend::{Backend, InstanceAlarm, InstanceSpec, LoadContext, ServerAccess};
use galatea_config::{InstanceGroup, InstanceKind, ModelConfig, Scheduling};
use galatea_scheduler::{
    EnsembleScheduler, EnsembleSpec, QueueScheduler, SchedulerSpec, StepModel,
};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, Result};

use crate::{
    BackendRegistry,
    lifecycle::Generation,
    plan::LoadPlan,
    served_model::{self, Parts, Retired, ServedModel},
};

/// Opens backends when they are first needed, and loads versions with them.
pub(crate) struct Loader {
    registry: BackendRegistry,
    opened: Mutex<BTreeMap<String, Arc<dyn Backend>>>,
    /// `--backend-config`, by backend; the empty name holds for all.
    settings: BTreeMap<String, BTreeMap<String, String>>,
    retired: mpsc::Sender<Retired>,
    /// What models see of the server.
    server: ServerAccess,
    hold_until_queued: usize,
}

impl Loader {
    pub fn new(
        registry: BackendRegistry,
        settings: BTreeMap<String, BTreeMap<String, String>>,
        retired: mpsc::Sender<Retired>,
        server: ServerAccess,
        hold_until_queued: usize,
    ) -> Self {
        Self { registry, opened: Mutex::default(), settings, retired, server, hold_until_queued }
    }

    /// The backend of this name, opened now if it was not yet. A failure is not remembered: the next load
    /// tries again.
    pub fn backend(&self, name: &str) -> Result<Arc<dyn Backend>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(backend) = opened.get(name) {
            return Ok(backend.clone());
        }
        let backend =
            self.registry.open(name).unwrap_or_else(|| Err(self.unknown_backend(name)))?;
        opened.insert(name.to_owned(), backend.clone());
        Ok(backend)
    }

    fn unknown_backend(&self, name: &str) -> Error {
        let known = self.registry.names().collect::<Vec<_>>().join(", ");
        Error::invalid_arg(format!(
            "unable to find backend library for backend '{name}', try specifying runtime on the model \
             configuration. This server has the backends: {known}."
        ))
    }

    /// Settings of one backend: the global ones, overlaid with its own.
    pub fn settings(&self, backend: &str) -> BTreeMap<String, String> {
        let mut settings = self.settings.get("").cloned().unwrap_or_default();
        settings.extend(self.settings.get(backend).cloned().unwrap_or_default());
        settings
    }

    /// Loads one version and starts its instances. Blocks until they are ready.
    pub fn load(
        &self,
        plan: &LoadPlan,
        version: i64,
        generation: Generation,
    ) -> Result<ServedModel> {
        let load_started_at = Instant::now();
        let config = plan.config.clone();
        refuse_unsupported(&config)?;
        if let Some(failure) = &plan.backend_failure {
            return Err(failure.clone());
        }
        let labels = served_model::read_labels(&config, &plan.folder.dir)?;
        let model = self.backend(config.backend())?.load(LoadContext {
            config: config.clone(),
            version,
            model_dir: plan.folder.dir.clone(),
            version_dir: plan.folder.version_dir(version),
            backend_config: self.settings(config.backend()),
            server: self.server.clone(),
        })?;
        let statistics = Arc::new(ModelStatistics::default());
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: config.clone(),
            version,
            model: Arc::from(model),
            instances: instance_specs(config.instance_groups()),
            statistics: statistics.clone(),
            hold_until_queued: self.hold_until_queued,
        })?;
        Ok(ServedModel::new(Parts {
            config,
            version,
            generation,
            scheduler,
            statistics,
            labels,
            load_started_at,
            ready_versions: plan.versions.clone(),
            retired: self.retired.clone(),
        }))
    }

    /// Loads one version of an ensemble; `models` are those of its steps, in order.
    pub fn load_ensemble(
        &self,
        plan: &LoadPlan,
        models: &[Arc<ServedModel>],
        version: i64,
        generation: Generation,
    ) -> Result<ServedModel> {
        let load_started_at = Instant::now();
        let config = plan.config.clone();
        warn_ignored(&config);
        let labels = served_model::read_labels(&config, &plan.folder.dir)?;
        let statistics = Arc::new(ModelStatistics::default());
        let scheduler = self.ensemble_scheduler(&config, models, version, statistics.clone())?;
        Ok(ServedModel::new(Parts {
            config,
            version,
            generation,
            scheduler: Arc::new(scheduler),
            statistics,
            labels,
            load_started_at,
            ready_versions: plan.versions.clone(),
            retired: self.retired.clone(),
        }))
    }

    pub fn ensemble_scheduler(
        &self,
        config: &Arc<ModelConfig>,
        models: &[Arc<ServedModel>],
        version: i64,
        statistics: Arc<ModelStatistics>,
    ) -> Result<EnsembleScheduler> {
        let of_step = |model: &Arc<ServedModel>| StepModel {
            config: model.shared_config(),
            target: model.clone(),
        };
        EnsembleScheduler::new(EnsembleSpec {
            config: config.clone(),
            version,
            models: models.iter().map(of_step).collect(),
            statistics,
        })
    }
}

/// What is checked as configuration but not built yet is refused by name, never half-done.
fn refuse_unsupported(config: &ModelConfig) -> Result<()> {
    let name = config.name();
    let what = match config.scheduling() {
        Scheduling::Sequence => "sequence_batching",
        Scheduling::Direct | Scheduling::Dynamic(_) | Scheduling::Ensemble(_) => {
            warn_ignored(config);
            return Ok(());
        }
    };
    Err(Error::unsupported(format!(
        "{what} of model '{name}' is not supported by this version of the server"
    )))
}

/// Settings that change speed, not answers, are told and left out.
fn warn_ignored(config: &ModelConfig) {
    if !config.raw().model_warmup.is_empty() {
        log::warn!(
            "model_warmup of model '{}' is not supported yet: its first requests run cold",
            config.name()
        );
    }
    if config.raw().response_cache.as_ref().is_some_and(|c| c.enable) {
        log::warn!(
            "response_cache of model '{}' is not supported yet: every request is executed",
            config.name()
        );
    }
}

/// `{group}_{i}` for CPU instances, `{group}_{i}_gpu{n}` for each GPU of a GPU group (C-45).
fn instance_specs(groups: &[InstanceGroup]) -> Vec<InstanceSpec> {
    let mut specs = Vec::new();
    for group in groups {
        for i in 0..group.count {
            let base = format!("{}_{i}", group.name);
            if group.kind == InstanceKind::Gpu {
                specs.extend(
                    group.gpus.iter().map(|&gpu| (format!("{base}_gpu{gpu}"), group.kind, gpu)),
                );
            } else {
                specs.push((base, group.kind, 0));
            }
        }
    }
    let numbered = specs.into_iter().enumerate();
    numbered
        .map(|(index, (name, kind, device_id))| InstanceSpec {
            name,
            kind,
            device_id,
            index,
            alarm: InstanceAlarm::default(),
        })
        .collect()
}
