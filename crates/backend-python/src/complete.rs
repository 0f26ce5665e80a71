//! A model's own `auto_complete_config` (B-70).

use std::{fs, sync::Arc};

use galatea_backend::{CompletionContext, InstanceAlarm, ServerAccess};
use galatea_config::{RawModelConfig, parse_json, to_json};
use galatea_proto::inference::model_config::SchedulingChoice;
use galatea_types::{Error, Result};
use serde_json::{Value, json};

use crate::{
    environment::{self, EnvironmentRequest},
    identity::Identity,
    origin::{Origin, mentions},
    package::Package,
    settings::{Settings, log_level},
    wire::kind,
    worker::{Worker, WorkerPlan},
};

/// The configuration as the model completes it. Most models do not, and then no worker is started.
pub(crate) fn complete(
    config: RawModelConfig,
    context: &CompletionContext<'_>,
    package: &Package,
    origin: &Origin,
) -> Result<RawModelConfig> {
    let file = origin.file(context.version_dir, &config.default_model_filename)?;
    let code = fs::read(&file).map_err(|e| {
        Error::internal(format!("Python model file '{}' cannot be read: {e}", file.display()))
    })?;
    if !mentions(&code, "auto_complete_config") {
        return Ok(config);
    }
    let backend_config = origin.settings(context.backend_config);
    let settings = Settings::read(&backend_config)?;
    let parameters = config.parameters.iter();
    let parameters = parameters.map(|(name, p)| (name.clone(), p.string_value.clone())).collect();
    let environment = environment::resolve(
        &EnvironmentRequest {
            model_name: context.model_name,
            model_dir: context.model_dir,
            version_dir: context.version_dir,
            parameters: &origin.parameters(parameters),
            backend_config: &backend_config,
        },
        &origin.variables,
    )?;
    let mut worker = Worker::start(WorkerPlan {
        identity: Identity { model: context.model_name.into(), instance: None },
        config: None,
        environment: Arc::new(environment),
        package: package.folder(),
        arenas: settings.arenas,
        patience: settings.patience,
        server: ServerAccess::default(),
        alarm: InstanceAlarm::default(),
    })?;
    let known: Value = serde_json::from_str(&to_json(&config)).unwrap_or_default();
    let question = json!({
        "model_py": file,
        "version_dir": context.version_dir,
        "model_dir": context.model_dir,
        "config": known,
        "arena_limit": settings.arenas.max,
        "log_level": log_level(),
    });
    match worker.ask(kind::COMPLETE, &question)?.map_err(Error::internal)? {
        Value::Null => Ok(config),
        completed => parse_json(&completed.to_string()).map(|completed| merged(config, completed)),
    }
}

/// What a model may complete; all else stays as it is written.
fn merged(mut config: RawModelConfig, completed: RawModelConfig) -> RawModelConfig {
    config.max_batch_size = completed.max_batch_size;
    config.input = completed.input;
    config.output = completed.output;
    if config.scheduling_choice.is_none()
        && let Some(choice @ SchedulingChoice::DynamicBatching(_)) = completed.scheduling_choice
    {
        config.scheduling_choice = Some(choice);
    }
    if completed.model_transaction_policy.is_some() {
        config.model_transaction_policy = completed.model_transaction_policy;
    }
    config
}
