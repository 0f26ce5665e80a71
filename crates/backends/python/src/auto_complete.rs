//! Runs a model's own `auto_complete_config` in a worker of its own, if the model's code has one.

use std::sync::Arc;

use galatea_backend::{CompletionContext, InstanceAlarm, ServerAccess};
use galatea_config::{ConfigDraft, parse_json, to_json};
use galatea_types::Result;
use galatea_worker::{LogLevels, MemoryRules, Worker, WorkerOptions, wire::kind};
use serde_json::{Value, json};

use crate::{
    defaults::{ModelDefaults, may_complete, read_code},
    environment::{self, EnvironmentRequest},
    package::Package,
    services::PythonServices,
    settings::{self, Settings},
    start::{self, WorkerStart},
    worker_rules::{ModelControlRule, ModelFolders},
};

/// Returns the configuration as the model completes it. Most models have no such code, and then no worker is started.
pub(crate) fn complete(
    mut config: ConfigDraft,
    context: &CompletionContext<'_>,
    package: &Package,
    defaults: &ModelDefaults,
) -> Result<ConfigDraft> {
    let file = defaults.file(context.version_dir, config.default_model_filename())?;
    if !may_complete(&read_code(&file)?) {
        return Ok(config);
    }
    let backend_config = defaults.settings(context.backend_config);
    let settings = Settings::read(&backend_config)?;
    let environment = environment::resolve(
        &EnvironmentRequest {
            model_name: context.model_name,
            model_dir: context.model_dir,
            version_dir: context.version_dir,
            parameters: &defaults.parameters(config.parameters()),
            paths: &defaults.paths(&config.parameters(), context.paths),
            backend_config: &backend_config,
            confinement: &defaults.rules.confinement(&defaults.variables),
            progress: defaults.rules.progress(),
        },
        &defaults.variables,
    )?;
    let folders =
        ModelFolders { model: context.model_dir, version: context.version_dir, code: &file };
    let WorkerStart { program, temporary: _temporary } =
        WorkerStart::new(&environment, package, &folders, defaults)?;
    let isolation = start::isolation(&program);
    let mut worker = Worker::start(WorkerOptions {
        identity: start::identity(context.model_name.into(), context.version, None),
        config: None,
        told_outputs: Arc::default(),
        program,
        memory: MemoryRules::of(settings.arenas),
        timeout: settings.timeout,
        timeout_setting: settings::TIMEOUT,
        initialization: settings.initialization,
        limits: defaults.rules.limits(&settings),
        services: PythonServices::new(ServerAccess::default(), ModelControlRule::default()),
        alarm: InstanceAlarm::default(),
    })?;
    let current: Value = serde_json::from_str(&to_json(config.raw())).unwrap_or_default();
    let request = json!({
        "model_py": file,
        "version_dir": context.version_dir,
        "model_dir": context.model_dir,
        "config": current,
        "arena_limit": settings.arenas.max,
        "log_level": LogLevels::now(),
        "isolation": isolation,
    });
    match worker.request(kind::COMPLETE, &request)? {
        Value::Null => {}
        completed => config.complete_with(parse_json(&completed.to_string())?.into()),
    }
    Ok(config)
}
