//! From a polled model to one version with running instances.

use std::sync::Arc;

use galatea_backend::{Devices, LoadContext, ServerAccess};
use galatea_config::{ModelConfig, Scheduling, differ_in_instances_only};
use galatea_scheduler::{
    EnsembleScheduler, EnsembleSpec, ExecutionRules, Hold, QueueScheduler, SchedulerSpec, StepModel,
};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Clock, Error, Result};

use super::{backends::Backends, cached_models::CachedModels, polled_model::PolledModel};
use crate::{
    initial_states, labels,
    lifecycle::Generation,
    manager::plan::{InstanceChange, instance_specs},
    metrics::ModelDistributions,
    served_model::{ServedModel, ServedModelSpec},
    unloader::Unloader,
    warm_up,
};

/// Loads versions with their backends.
pub(crate) struct VersionLoader {
    pub backends: Backends,
    /// What models see of the server.
    pub server: ServerAccess,
    /// Unloads a version when no request can reach it any more.
    pub unloader: Unloader,
    /// What is recorded of each version.
    pub distributions: ModelDistributions,
    /// Whose responses are kept, and where.
    pub cached: CachedModels,
    /// See [`EngineOptions::hold`](crate::EngineOptions::hold).
    pub hold: Hold,
    /// See [`EngineOptions::devices`](crate::EngineOptions::devices).
    pub devices: Devices,
    /// See [`EngineOptions::starts_instances_one_by_one`](crate::EngineOptions::starts_instances_one_by_one).
    pub starts_instances_one_by_one: bool,
    /// See [`EngineOptions::execution`](crate::EngineOptions::execution).
    pub execution: ExecutionRules,
    /// See [`EngineOptions::clock`](crate::EngineOptions::clock).
    pub clock: Clock,
}

impl VersionLoader {
    /// Loads one version and starts its instances. Blocks until they are ready.
    pub fn load(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        version: i64,
        generation: Generation,
    ) -> Result<ServedModel> {
        let load_started_at = self.clock.now();
        let config = config.clone();
        let labels = labels::read(&config, polled.folder.path())?;
        let warm_up = warm_up::samples(&config, polled.folder.path())?;
        let instances = instance_specs(config.instance_groups());
        let backend = self.backends.open(config.backend())?;
        let context = LoadContext {
            config: config.clone(),
            version,
            model_dir: polled.folder.path().to_owned(),
            version_dir: polled.folder.version_dir(version),
            backend_config: self.backends.settings(config.backend()),
            paths: polled.paths.clone(),
            server: self.server.clone(),
            devices: self.devices.clone(),
        };
        // Threads that a runtime starts for all instances are where these are.
        let placement = self.execution.shared_placement(&config, &instances);
        let loaded = placement.run(|| backend.load(context));
        let model = loaded.map_err(|error| Error::internal(error.to_string()))??;
        let model = polled.hidden.clone().wrap(Arc::from(model));
        let is_cached = self.cached.has(&config);
        let scope = self.cached.scope(polled, &config, version, generation, &[])?;
        let statistics = self.statistics(&config, is_cached)?;
        let scheduler = QueueScheduler::start(SchedulerSpec {
            config: config.clone(),
            version,
            model: Arc::clone(&model),
            instances,
            statistics: statistics.clone(),
            initial_states: initial_states::read(&config, polled.folder.path())?,
            hold: self.hold,
            starts_one_by_one: self.starts_instances_one_by_one,
            warm_up,
            execution: self.execution.clone(),
        })?;
        Ok(ServedModel::new(ServedModelSpec {
            id: polled.id.clone(),
            polled: polled.raw.clone(),
            version,
            generation,
            instances: Some(scheduler.clone()),
            scheduler: self.cached.wrap(scheduler, scope, &config, version, &statistics),
            is_cached,
            config,
            model: Some(model),
            statistics,
            labels,
            load_started_at,
            ready_versions: polled.versions.clone(),
            lease: polled.folder.lease(),
            unloader: self.unloader.clone(),
        }))
    }

    fn statistics(&self, config: &ModelConfig, is_cached: bool) -> Result<Arc<ModelStatistics>> {
        let settings = self.distributions.of(config, is_cached)?;
        Ok(Arc::new(ModelStatistics::new(&settings, self.clock.clone())))
    }

    /// Whether a ready version can be given the instances of this configuration while it is ready.
    pub fn can_change_instances(&self, model: &ServedModel, config: &ModelConfig) -> bool {
        // What its instances have of sequences would be lost.
        let has_sequences = matches!(config.scheduling(), Scheduling::Sequence(_));
        !has_sequences
            && differ_in_instances_only(model.current_config().raw(), config.raw())
            && model.can_have(&instance_specs(config.instance_groups()))
    }

    /// Gives a ready version the instances of this configuration. Blocks until the new ones are ready, and those that go
    /// have answered what they have.
    pub fn change_instances(&self, model: &ServedModel, config: &Arc<ModelConfig>) -> Result<()> {
        let wanted = instance_specs(config.instance_groups());
        let change = InstanceChange::between(model.instances(), wanted);
        let (added, removed) = (change.added.len(), change.removed.len());
        if added + removed > 0 {
            let (id, version) = (model.id(), model.version());
            log::info!(
                "changing instances of '{id}' version {version}: {added} more, {removed} less"
            );
        }
        model.change_instances(config, change.added, &change.removed)
    }

    /// Loads one version of an ensemble; `models` are those of its steps, in order.
    pub fn load_ensemble(
        &self,
        polled: &PolledModel,
        config: &Arc<ModelConfig>,
        models: &[Arc<ServedModel>],
        version: i64,
        generation: Generation,
    ) -> Result<ServedModel> {
        let load_started_at = self.clock.now();
        config.check_cacheable()?;
        let config = config.clone();
        let mut labels = labels::read(&config, polled.folder.path())?;
        labels::inherit(&mut labels, &config, |step| models.get(step).map(|m| m.labels()));
        let is_cached = self.cached.has(&config);
        let scope = self.cached.scope(polled, &config, version, generation, models)?;
        let statistics = self.statistics(&config, is_cached)?;
        let scheduler = ensemble_scheduler(&config, models, version, statistics.clone())?;
        let scheduler = Arc::new(scheduler);
        Ok(ServedModel::new(ServedModelSpec {
            id: polled.id.clone(),
            polled: polled.raw.clone(),
            version,
            generation,
            scheduler: self.cached.wrap(scheduler, scope, &config, version, &statistics),
            is_cached,
            config,
            instances: None,
            model: None,
            statistics,
            labels,
            load_started_at,
            ready_versions: polled.versions.clone(),
            lease: polled.folder.lease(),
            unloader: self.unloader.clone(),
        }))
    }
}

/// `models` are those of the steps, in order.
pub(crate) fn ensemble_scheduler(
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
