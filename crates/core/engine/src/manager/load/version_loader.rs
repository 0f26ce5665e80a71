//! Makes a version with running instances from a polled model.

use std::sync::Arc;

use arc_swap::ArcSwap;
use galatea_backend::{LoadContext, ServerAccess};
use galatea_config::{ModelConfig, Scheduling, differ_in_instances_only};
use galatea_scheduler::{
    Admission, AdmittingScheduler, EnsembleScheduler, EnsembleSpec, QueueScheduler, Scheduler,
    SchedulerSpec, StepModel,
};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, Result};

use super::{backends::Backends, cached_models, polled_model::Loading};
use crate::{
    initial_states,
    labels::{self, Labels},
    manager::plan::{InstanceChange, instance_specs},
    metrics::distributions,
    options::EngineOptions,
    served_model::ServedModel,
    unloader::Unloader,
    warm_up,
};

pub(crate) struct VersionLoader {
    pub options: Arc<EngineOptions>,
    pub backends: Backends,
    /// The server's services for models.
    pub server: ServerAccess,
    /// Unloads a version when no request can reach it any more.
    pub unloader: Unloader,
}

impl VersionLoader {
    /// Loads one version and starts its instances. Blocks until they are ready.
    pub fn load(&self, loading: Loading<'_>) -> Result<ServedModel> {
        let Loading { polled, config, version, .. } = loading;
        let (options, model_dir) = (&*self.options, polled.folder.path());
        let labels = labels::read(config, model_dir)?;
        let warm_up = warm_up::samples(config, model_dir)?;
        let instances = instance_specs(config.instance_groups());
        let parameters = config.parameters();
        let backend = self.backends.open_for(config.backend(), parameters, &polled.folder)?;
        let context = LoadContext {
            config: config.clone(),
            version,
            model_dir: model_dir.to_owned(),
            version_dir: polled.folder.version_dir(version),
            backend_config: self.backends.settings.of(config.backend()),
            paths: polled.paths.clone(),
            server: self.server.clone(),
            devices: options.devices.clone(),
        };
        // Threads that a runtime starts for all instances get the placement of the instances.
        let placement = options.execution.shared_placement(config, &instances);
        let loaded = placement.run(|| backend.load(context));
        let model = loaded.map_err(|error| Error::internal(error.to_string()))??;
        let model = polled.hidden.clone().wrap(Arc::from(model));
        let mut served = self.served(loading, labels, &[], |statistics| {
            let scheduler = QueueScheduler::start(SchedulerSpec {
                config: config.clone(),
                version,
                model: Arc::clone(&model),
                instances,
                statistics,
                initial_states: initial_states::read(config, model_dir)?,
                hold: options.hold,
                starts_one_by_one: options.starts_instances_one_by_one,
                warm_up,
                execution: options.execution.clone(),
            })?;
            Ok((scheduler.clone(), Some(scheduler)))
        })?;
        served.model = Some(model);
        served.library = self.backends.library_of(config, &polled.folder, version);
        if let Some(path) = &served.library {
            let (id, backend, path) = (&polled.id, config.backend(), path.display());
            log::info!(model = *id.name; "backend '{backend}' of '{id}' version {version} is '{path}'");
        }
        Ok(served)
    }

    /// Loads one version of an ensemble. `models` are those of its steps, in order.
    pub fn load_ensemble(
        &self,
        loading: Loading<'_>,
        models: &[Arc<ServedModel>],
    ) -> Result<ServedModel> {
        let Loading { polled, config, version, .. } = loading;
        config.check_cacheable()?;
        let mut labels = labels::read(config, polled.folder.path())?;
        labels::inherit(&mut labels, config, |step| models.get(step).map(|m| &m.labels));
        self.served(loading, labels, models, |statistics| {
            Ok((Arc::new(ensemble_scheduler(config, models, version, statistics)?), None))
        })
    }

    /// Returns the version with the scheduler that `start` starts, the queue of its instances if it has one, and the response
    /// cache in front. `steps` are the models of an ensemble's steps.
    fn served(
        &self,
        loading: Loading<'_>,
        labels: Labels,
        steps: &[Arc<ServedModel>],
        start: impl FnOnce(
            Arc<ModelStatistics>,
        ) -> Result<(Arc<dyn Scheduler>, Option<Arc<QueueScheduler>>)>,
    ) -> Result<ServedModel> {
        let Loading { polled, config, version, generation, started_at } = loading;
        let options = &*self.options;
        let is_cached = cached_models::is_cached(options, config);
        let scope = cached_models::scope(options, loading, steps)?;
        let settings = distributions(&options.metrics, config, is_cached)?;
        let clock = &options.clock;
        let statistics = Arc::new(ModelStatistics::new(&settings, clock.clone()));
        let (mut scheduler, instances) = start(statistics.clone())?;
        let admission = options
            .has_admission
            .then(|| Admission::new(config.clone(), statistics.clone(), instances.as_ref()));
        if let Some(admission) = &admission {
            scheduler = Arc::new(AdmittingScheduler::new(admission.clone(), scheduler));
        }
        Ok(ServedModel {
            id: polled.id.clone(),
            config: config.clone(),
            current_config: ArcSwap::new(config.clone()),
            polled: polled.raw.clone(),
            version,
            ready_versions: ArcSwap::from_pointee(polled.versions.clone()),
            generation,
            scheduler: cached_models::wrap(options, scheduler, scope, config, version, &statistics),
            is_cached,
            admission,
            instances,
            model: None,
            library: None,
            statistics,
            labels,
            load_duration: clock.since(started_at),
            lease: polled.folder.lease(),
            unloader: self.unloader.clone(),
        })
    }

    /// Returns true if a ready version can get the instances of this configuration without a reload.
    pub fn can_change_instances(&self, model: &ServedModel, config: &ModelConfig) -> bool {
        // The sequences of its instances would be lost.
        let has_sequences = matches!(config.scheduling(), Scheduling::Sequence(_));
        !has_sequences
            && differ_in_instances_only(model.current_config().raw(), config.raw())
            && model
                .model
                .as_ref()
                .is_some_and(|model| model.can_have(&instance_specs(config.instance_groups())))
    }

    /// Gives a ready version the instances of this configuration. Blocks until the new ones are ready, and the
    /// removed ones have answered their requests.
    pub fn change_instances(&self, model: &ServedModel, config: &Arc<ModelConfig>) -> Result<()> {
        let wanted = instance_specs(config.instance_groups());
        let now = model.instances.as_ref().map(|queue| queue.instances()).unwrap_or_default();
        let change = InstanceChange::between(now, wanted);
        let (added, removed) = (change.added.len(), change.removed.len());
        if added + removed > 0 {
            let (id, version) = (&model.id, model.version);
            log::info!(
                "changing instances of '{id}' version {version}: {added} more, {removed} less"
            );
        }
        if let Some(queue) = &model.instances {
            queue.change_instances(change.added, &change.removed)?;
        }
        model.current_config.store(config.clone());
        Ok(())
    }
}

/// Creates the scheduler of an ensemble. `models` are those of its steps, in order.
pub(crate) fn ensemble_scheduler(
    config: &Arc<ModelConfig>,
    models: &[Arc<ServedModel>],
    version: i64,
    statistics: Arc<ModelStatistics>,
) -> Result<EnsembleScheduler> {
    let of_step = |model: &Arc<ServedModel>| StepModel {
        config: model.config.clone(),
        target: model.clone(),
    };
    EnsembleScheduler::new(EnsembleSpec {
        config: config.clone(),
        version,
        models: models.iter().map(of_step).collect(),
        statistics,
    })
}
