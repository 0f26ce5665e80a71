use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use galatea_backend::{InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{InstanceKind, to_json};
use galatea_types::{Error, Result};
use serde_json::{Value, json};

use crate::{
    environment::{self, Environment, EnvironmentRequest},
    identity::Identity,
    instance::PythonInstance,
    link::Link,
    origin::{Origin, mentions},
    package::Package,
    settings::{Settings, log_level},
    wire::{INLINE_LIMIT, kind},
    worker::{Worker, WorkerPlan},
};

/// How long a model may take to say whether it is ready.
const READINESS_LIMIT: Duration = Duration::from_secs(5);

/// A version of a Python model: where it lies and in which environment it runs.
pub(crate) struct PythonModel {
    context: LoadContext,
    file: PathBuf,
    settings: Settings,
    environment: Arc<Environment>,
    package: Arc<Package>,
    /// It answers through response senders, perhaps after `execute` has returned.
    takes_senders: bool,
    has_readiness_check: AtomicBool,
    workers: Mutex<Vec<Weak<Link>>>,
}

impl PythonModel {
    pub fn load(context: LoadContext, package: Arc<Package>, origin: &Origin) -> Result<Self> {
        let config = &context.config;
        let backend_config = origin.settings(&context.backend_config);
        let settings = Settings::read(&backend_config)?;
        check_parameters(&context)?;
        let file = origin.file(&context.version_dir, config.default_model_filename())?;
        let environment = environment::resolve(
            &EnvironmentRequest {
                model_name: config.name(),
                model_dir: &context.model_dir,
                version_dir: &context.version_dir,
                parameters: &origin.parameters(config.parameters().clone()),
                backend_config: &backend_config,
            },
            &origin.variables,
        )?;
        log::info!("model '{}' runs in {}", config.name(), environment.description);
        Ok(Self {
            takes_senders: config.is_decoupled() || takes_senders(&file)?,
            file,
            settings,
            environment: Arc::new(environment),
            package,
            has_readiness_check: AtomicBool::new(false),
            workers: Mutex::default(),
            context,
        })
    }

    fn initialization(&self, spec: &InstanceSpec) -> Value {
        let config = &self.context.config;
        json!({
            "model_py": self.file,
            "version_dir": self.context.version_dir,
            "model_dir": self.context.model_dir,
            "decoupled": config.is_decoupled(),
            "inline_limit": INLINE_LIMIT,
            "arena_limit": self.settings.arenas.max,
            "args": {
                "model_config": to_json(config.raw()),
                "model_instance_kind": kind_name(spec.kind),
                "model_instance_name": spec.name,
                "model_instance_device_id": spec.device_id.to_string(),
                "model_repository": self.context.model_dir,
                "model_version": self.context.version.to_string(),
                "model_name": &**config.name(),
            },
            "log_level": log_level(),
        })
    }

    fn start(&self, spec: &InstanceSpec) -> Result<Worker> {
        let config = &self.context.config;
        let identity = Identity { model: config.name().clone(), instance: Some(spec.name.clone()) };
        let mut worker = Worker::start(WorkerPlan {
            identity,
            config: Some(config.clone()),
            environment: self.environment.clone(),
            package: self.package.folder(),
            arenas: self.settings.arenas,
            patience: self.settings.patience,
            server: self.context.server.clone(),
            alarm: spec.alarm.clone(),
        })?;
        let ready = worker.ask(kind::INIT, &self.initialization(spec))?;
        let ready = ready.map_err(Error::internal)?;
        if ready.get("has_is_ready").and_then(Value::as_bool) == Some(true) {
            self.has_readiness_check.store(true, Ordering::Release);
        }
        worker.set_up()?;
        Ok(worker)
    }

    fn remember(&self, link: &Arc<Link>) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|link| link.strong_count() > 0);
        workers.push(Arc::downgrade(link));
    }

    fn living_workers(&self) -> Vec<Arc<Link>> {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let links = workers.iter().filter_map(Weak::upgrade);
        links.filter(|link| link.death().is_none()).collect()
    }
}

fn takes_senders(file: &Path) -> Result<bool> {
    let code = fs::read(file).map_err(|e| {
        Error::internal(format!("failed to read the model file {}: {e}", file.display()))
    })?;
    Ok(mentions(&code, "get_response_sender"))
}

impl Model for PythonModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let worker = self.start(spec)?;
        self.remember(worker.link());
        let (config, version) = (self.context.config.clone(), self.context.version);
        Ok(Box::new(PythonInstance::new(&spec.name, config, version, self.takes_senders, worker)))
    }

    fn may_answer_later(&self) -> bool {
        self.takes_senders
    }

    fn has_readiness_check(&self) -> bool {
        self.has_readiness_check.load(Ordering::Acquire)
    }

    /// Every living worker must say so, all asked at the same time.
    fn is_ready(&self) -> bool {
        let links = self.living_workers();
        if !self.has_readiness_check() {
            return true;
        }
        thread::scope(|scope| {
            let ask = |link: &Arc<Link>| {
                let link = link.clone();
                thread::Builder::new().spawn_scoped(scope, move || link.ask_ready(READINESS_LIMIT))
            };
            let asked: Vec<_> = links.iter().map(ask).collect();
            let is_ready = |thread: std::io::Result<thread::ScopedJoinHandle<'_, bool>>| {
                thread.is_ok_and(|thread| thread.join().unwrap_or(false))
            };
            // All are joined, whatever the first says.
            !asked.is_empty() && asked.into_iter().map(is_ready).fold(true, |all, one| all & one)
        })
    }
}

/// B-62.
fn check_parameters(context: &LoadContext) -> Result<()> {
    match context.config.parameters().get("FORCE_CPU_ONLY_INPUT_TENSORS").map(String::as_str) {
        None | Some("yes" | "no") => Ok(()),
        Some(other) => Err(Error::unsupported(format!(
            "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: {other}'"
        ))),
    }
}

fn kind_name(kind: InstanceKind) -> &'static str {
    match kind {
        InstanceKind::Cpu => "CPU",
        InstanceKind::Gpu => "GPU",
        InstanceKind::Model => "MODEL",
    }
}
