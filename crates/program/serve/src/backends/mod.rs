//! The backends of the server. Each is opened when the first model needs it.

mod early_steps;
pub mod inspectors;
pub mod libraries;
pub mod model_worker;
pub(crate) mod native;
pub mod pytorch;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_backend::Backend;
use galatea_backend_c::{CBackendOptions, LIBRARIES};
use galatea_backend_process::ProcessBackend;
use galatea_backend_python::{
    PythonBackend, WorkerRules,
    environment::{ADD_NUMPY, cache_figures, find_python_backend, python_backend_file},
};
use galatea_backend_torch::TorchInspector;
use galatea_engine::{BackendRegistry, BackendSettings};
use galatea_http::SharedAbout;
use galatea_telemetry::{families, metrics::Figures};
use galatea_types::{LockExt, Result};

use self::native::NativeBackend;
pub use self::{early_steps::beside, native::EarlyBackend};
use crate::{
    options::{RuntimeOptions, ServeOptions},
    table::Table,
};

/// Triton's backend directory.
pub const DEFAULT_BACKEND_DIRECTORY: &str = "/opt/tritonserver/backends";

/// The backends this program offers, and those that are open.
pub struct Backends {
    runtimes: RuntimeOptions,
    config: BackendSettings,
    python: WorkerRules,
    noted: OpenedList,
    early: EarlyBackend,
    /// True if backends complete configurations.
    completes_config: bool,
}

/// The settings of one backend, from `--backend-config`.
type Settings = BTreeMap<String, String>;

/// The parts from which a backend is made, and the path to show for it.
type Located = Result<(NativeBackend, PathBuf)>;

type Locate = fn(&RuntimeOptions, &Settings) -> Located;

impl Backends {
    /// Makes the backends of the options.
    pub fn new(options: &ServeOptions) -> Self {
        let mut config = options.engine.backend_config.clone();
        // A server that may not fetch libraries fetches no numpy either, unless the user asks for it.
        if !options.runtimes.may_download && !config.of("python").contains_key(ADD_NUMPY) {
            config.set("python", ADD_NUMPY, "false");
        }
        Self {
            runtimes: options.runtimes.clone(),
            config,
            python: options.python.clone(),
            noted: OpenedList { opened: Arc::default(), about: options.http_options.about.clone() },
            early: options.early.clone(),
            completes_config: options.engine.auto_completes_config,
        }
    }

    /// Returns the backends. Each is opened when the first model needs it: a server without ONNX models needs no library.
    pub fn registry(&self) -> BackendRegistry {
        let mut registry = BackendRegistry::default();
        for name in galatea_backend_builtin::ALL.map(|backend| backend.name()) {
            let open = self.native(name, move |_, _| built_in(name));
            registry.register_unlisted(name, open);
        }
        let natives: [(_, Locate); 4] = [
            ("onnxruntime", onnx),
            ("tensorflow", tensorflow),
            ("openvino", openvino),
            ("pytorch", torch),
        ];
        for (name, locate) in natives {
            registry.register(name, self.native(name, locate));
        }
        // Opening this backend compiles the shim.
        registry.inspect_first("pytorch", Arc::new(TorchInspector));
        let (noted, variables) = (self.noted.clone(), self.runtimes.environment.clone());
        let (config, rules) = (self.config.of("python"), self.python.clone());
        registry.register("python", move || {
            let backend = PythonBackend::open(None, &config, &variables, &rules)?;
            noted.add("python", &*backend, Path::new("built-in"));
            Ok(backend)
        });
        let (config, noted) = (self.config.clone(), self.noted.clone());
        let directory = backend_directory(&self.runtimes);
        let (variables, rules) = (self.runtimes.environment.clone(), self.python.clone());
        let library = self.library();
        registry.search(searched_files(directory.clone()), move |name| {
            if let Some(backend) = LIBRARIES.name_of(name) {
                return Some(library(backend, name));
            }
            if LIBRARIES.find(&directory, name).is_some() {
                return Some(library(name, name));
            }
            let files = find_python_backend(&directory, name)?;
            // It runs like models of `python`, so that backend's settings apply too.
            let settings = config.overlaid(&["python", name]);
            let path = files.model_py.clone();
            let backend = PythonBackend::open(Some((name, files)), &settings, &variables, &rules);
            Some(backend.inspect(|backend| noted.add(name, &**backend, &path)))
        });
        registry
    }

    /// Returns a backend whose models may be isolated.
    fn native(
        &self,
        name: &'static str,
        locate: impl Fn(&RuntimeOptions, &Settings) -> Located + Send + Sync + 'static,
    ) -> impl Fn() -> Result<Arc<dyn Backend>> + Send + Sync + 'static {
        let (runtimes, noted) = (self.runtimes.clone(), self.noted.clone());
        let (settings, early) = (self.config.of(name), self.early.clone());
        move || {
            let (native, path) = locate(&runtimes, &settings)?;
            let (description, child) = (native.to_json()?, model_worker::program(&runtimes));
            let early = early.clone();
            let open = Box::new(move || early.take(&native).unwrap_or_else(|| native.open()));
            let backend = ProcessBackend::open(name, &settings, description, child, open)?;
            noted.add(name, &*backend, &path);
            Ok(backend)
        }
    }

    /// Returns a function that opens the library of a backend that was made for Triton. Its second argument is the name to show:
    /// a library beside a backend of the server's own has that of its file.
    fn library(&self) -> impl Fn(&str, &str) -> Result<Arc<dyn Backend>> + Send + Sync + 'static {
        let (runtimes, noted, config) =
            (self.runtimes.clone(), self.noted.clone(), self.config.clone());
        let completes_config = self.completes_config;
        move |name, shown| {
            let (directory, settings) = (backend_directory(&runtimes), config.of(name));
            let options = CBackendOptions {
                name: name.to_owned(),
                directory: directory.clone(),
                settings: settings.clone(),
                completes_config,
                waits_for_answers: false,
            };
            let isolated = CBackendOptions { waits_for_answers: true, ..options.clone() };
            let description = NativeBackend::C(isolated).to_json()?;
            let native = NativeBackend::C(options);
            let open = Box::new(move || native.open());
            let child = model_worker::program(&runtimes);
            let backend = ProcessBackend::open(name, &settings, description, child, open)?;
            noted.add(shown, &*backend, &directory.join(name).join(LIBRARIES.file_name(name)));
            Ok(backend)
        }
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new(["Backend", "Path", "Config"]);
        for (name, path) in self.noted.opened.lock_unpoisoned().iter() {
            let settings = self.config.of(LIBRARIES.name_of(name).unwrap_or(name));
            let config = serde_json::json!({ "cmdline": settings });
            table.row([name.clone(), path.clone(), config.to_string()]);
        }
        table
    }
}

/// Returns the function that lists the files that make a backend that is not registered, in the order of the search. A library
/// may lie in the model's folders too.
fn searched_files(directory: PathBuf) -> impl Fn(&str) -> Vec<PathBuf> + Send + Sync {
    move |name| {
        let name = LIBRARIES.name_of(name).unwrap_or(name);
        let code = python_backend_file(&directory, name);
        let library = code.as_ref().map(|code| code.with_file_name(LIBRARIES.file_name(name)));
        library.into_iter().chain(code).collect()
    }
}

/// Adds the figures of Python environments, once a model has asked for one.
pub fn environment_figures(figures: &mut Figures) {
    let Some(cache) = cache_figures() else { return };
    figures.set(&families::ENVIRONMENTS, cache.environments);
    figures.set(&families::ENVIRONMENT_BYTES, cache.bytes);
    figures.set_labelled(&families::ENVIRONMENT_BUILDS, "success", cache.made);
    figures.set_labelled(&families::ENVIRONMENT_BUILDS, "failure", cache.failed);
}

/// Locates a built-in backend.
fn built_in(name: &str) -> Located {
    Ok((NativeBackend::BuiltIn(name.to_owned()), PathBuf::from("built-in")))
}

fn onnx(runtimes: &RuntimeOptions, settings: &Settings) -> Located {
    let library = libraries::onnxruntime(runtimes)?;
    let settings = settings.clone();
    Ok((NativeBackend::Onnx { library: library.clone(), settings }, library))
}

fn tensorflow(runtimes: &RuntimeOptions, _: &Settings) -> Located {
    let library = libraries::tensorflow(runtimes)?;
    Ok((NativeBackend::TensorFlow { library: library.clone() }, library))
}

fn openvino(runtimes: &RuntimeOptions, _: &Settings) -> Located {
    let library = libraries::openvino(runtimes)?;
    Ok((NativeBackend::OpenVino { library: library.clone() }, library))
}

fn torch(runtimes: &RuntimeOptions, _: &Settings) -> Located {
    let found = pytorch::prepared(runtimes, &mut *runtimes.progress.make())?;
    let cuda = found.libtorch.cuda_library();
    Ok((NativeBackend::Torch { shim: found.shim, cuda }, found.libtorch.library()))
}

pub fn backend_directory(runtimes: &RuntimeOptions) -> PathBuf {
    let given = runtimes.backend_directory.clone();
    given.unwrap_or_else(|| PathBuf::from(DEFAULT_BACKEND_DIRECTORY))
}

/// List of opened backends, for the table in the log and for the console.
#[derive(Clone)]
struct OpenedList {
    /// Path of each opened backend's library, by its name.
    opened: Arc<Mutex<BTreeMap<String, String>>>,
    about: SharedAbout,
}

impl OpenedList {
    fn add(&self, name: &str, backend: &dyn Backend, path: &Path) {
        let path = path.display().to_string();
        self.about.add_runtime(name, backend.runtime(), path.clone());
        self.opened.lock_unpoisoned().insert(name.to_owned(), path);
    }
}
