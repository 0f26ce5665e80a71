//! A loaded Python model, which starts a worker for each instance.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use galatea_backend::{InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{Diagnostic, FieldPath, InstanceKind, ModelConfig, to_json};
use galatea_types::{Code, Result};
use galatea_worker::{
    LogLevels, MemoryRules, Program, ReportedOutputs, Worker, WorkerInstance, WorkerList,
    WorkerOptions,
    wire::{INLINE_LIMIT, kind},
};
use serde_json::{Value, json};

use crate::{
    defaults::{ModelDefaults, mentions, read_code},
    environment::{self, EnvironmentLease, EnvironmentRequest},
    package::Package,
    services::{PythonServices, ReadinessQueries},
    settings::{self, Settings},
    start::{self, WorkerStart},
    temporary_folder::TemporaryFolder,
    worker_rules::{ModelControlRule, ModelFolders, WorkerRules},
};

/// Time limit of a model's `is_ready`.
const READINESS_TIMEOUT: Duration = Duration::from_secs(5);

/// A version of a Python model, with its folder and environment.
pub(crate) struct PythonModel {
    context: LoadContext,
    file: PathBuf,
    settings: Settings,
    program: Arc<Program>,
    _temporary: Option<TemporaryFolder>,
    /// Keeps the worker's code and the environment on disk while the model is loaded.
    _package: Arc<Package>,
    _environment: EnvironmentLease,
    /// True if it may respond through response senders, perhaps after `execute` has returned.
    uses_senders: bool,
    has_readiness_check: AtomicBool,
    model_control: ModelControlRule,
    workers: WorkerList<PythonServices>,
    rules: WorkerRules,
    told_outputs: Arc<ReportedOutputs>,
}

impl PythonModel {
    pub fn load(
        context: LoadContext,
        package: Arc<Package>,
        defaults: &ModelDefaults,
    ) -> Result<Self> {
        let config = &context.config;
        let backend_config = defaults.settings(&context.backend_config);
        let settings = Settings::read(&backend_config)?.of_model(config.parameters())?;
        check_parameters(config)?;
        let file = defaults.file(&context.version_dir, config.default_model_filename())?;
        let environment = environment::resolve(
            &EnvironmentRequest {
                model_name: config.name(),
                model_dir: &context.model_dir,
                version_dir: &context.version_dir,
                parameters: &defaults.parameters(config.parameters().clone()),
                paths: &defaults.paths(config.parameters(), &context.paths),
                backend_config: &backend_config,
                confinement: &defaults.rules.confinement(&defaults.variables),
                progress: defaults.rules.progress(),
            },
            &defaults.variables,
        )?;
        let code = defaults.files.as_ref().map(|files| files.model_py.display());
        let of_backend = code.map(|code| format!("'{code}' ")).unwrap_or_default();
        let description = &environment.description;
        log::info!("model '{}' runs {of_backend}in {description}", config.name());
        let folders =
            ModelFolders { model: &context.model_dir, version: &context.version_dir, code: &file };
        let start = WorkerStart::new(&environment, &package, &folders, defaults)?;
        Ok(Self {
            model_control: defaults.rules.model_control(config.name()),
            uses_senders: config.is_decoupled()
                || mentions(&read_code(&file)?, "get_response_sender"),
            file,
            settings,
            program: start.program,
            _temporary: start.temporary,
            _package: package,
            _environment: environment.lease,
            has_readiness_check: AtomicBool::new(false),
            workers: WorkerList::default(),
            rules: defaults.rules.clone(),
            told_outputs: Arc::default(),
            context,
        })
    }

    fn initialization(&self, spec: &InstanceSpec, memory: &MemoryRules) -> Value {
        let config = &self.context.config;
        json!({
            "model_py": self.file,
            "version_dir": self.context.version_dir,
            "model_dir": self.context.model_dir,
            "decoupled": config.is_decoupled(),
            "inline_limit": INLINE_LIMIT,
            "arena_limit": memory.arenas.max,
            "args": {
                "model_config": to_json(config.raw()),
                "model_instance_kind": kind_name(spec.kind),
                "model_instance_name": spec.name,
                "model_instance_device_id": spec.device_id.to_string(),
                "model_repository": self.context.model_dir,
                "model_version": self.context.version.to_string(),
                "model_name": &**config.name(),
            },
            "log_level": LogLevels::now(),
            "isolation": start::isolation(&self.program),
        })
    }

    fn start(&self, spec: &InstanceSpec) -> Result<Worker<PythonServices>> {
        let config = &self.context.config;
        let memory = MemoryRules::within(self.settings.arenas, &self.context.server.memory);
        let mut worker = Worker::start(WorkerOptions {
            identity: start::identity(
                config.name().clone(),
                self.context.version,
                Some(spec.name.clone()),
            ),
            config: Some(config.clone()),
            told_outputs: self.told_outputs.clone(),
            program: self.program.clone(),
            memory: memory.clone(),
            timeout: self.settings.timeout,
            timeout_setting: settings::TIMEOUT,
            initialization: self.settings.initialization,
            limits: self.rules.limits(&self.settings),
            services: PythonServices::new(self.context.server.clone(), self.model_control.clone()),
            alarm: spec.alarm.clone(),
        })?;
        let ready = worker.request(kind::INIT, &self.initialization(spec, &memory))?;
        if ready.get("has_is_ready").and_then(Value::as_bool) == Some(true) {
            self.has_readiness_check.store(true, Ordering::Release);
        }
        worker.set_ready()?;
        Ok(worker)
    }
}

impl Model for PythonModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let worker = self.start(spec)?;
        self.workers.add(&worker.connection);
        Ok(Box::new(WorkerInstance::new(&self.context.config, self.uses_senders, worker)))
    }

    fn may_answer_later(&self) -> bool {
        self.uses_senders
    }

    fn has_readiness_check(&self) -> bool {
        self.has_readiness_check.load(Ordering::Acquire)
    }

    fn prepare_to_leave(&self) {
        self.workers.prepare_to_leave();
    }

    /// Runs the readiness check of every living worker, all at the same time.
    fn is_ready(&self) -> bool {
        if !self.has_readiness_check() {
            return true;
        }
        let workers = self.workers.living();
        let deadline = Instant::now() + READINESS_TIMEOUT;
        let queries: Vec<_> = workers
            .iter()
            .map(|w| (&w.services.readiness, w.services.readiness.ask(&w.channels)))
            .collect();
        let is_ready = |(readiness, query): &(&ReadinessQueries, Option<u64>)| {
            query.is_some_and(|id| readiness.result(id, deadline))
        };
        !queries.is_empty() && queries.iter().all(is_ready)
    }
}

/// Checks that `FORCE_CPU_ONLY_INPUT_TENSORS` is `yes` or `no`, as in Triton. Inputs always come in main memory.
pub(crate) fn check_parameters(config: &ModelConfig) -> Result<()> {
    match config.parameters().get("FORCE_CPU_ONLY_INPUT_TENSORS").map(String::as_str) {
        None | Some("yes" | "no") => Ok(()),
        Some(other) => {
            let key = "FORCE_CPU_ONLY_INPUT_TENSORS";
            let found = Diagnostic::error(format!("Incorrect value for {key}: {other}'"))
                .about(
                    FieldPath::from("parameters").named(key).field("value").field("string_value"),
                )
                .with_advice("write `yes` or `no`");
            Err(found.into_unplaced_error(Code::Unsupported))
        }
    }
}

fn kind_name(kind: InstanceKind) -> &'static str {
    match kind {
        InstanceKind::Cpu => "CPU",
        InstanceKind::Gpu => "GPU",
        InstanceKind::Model => "MODEL",
    }
}
