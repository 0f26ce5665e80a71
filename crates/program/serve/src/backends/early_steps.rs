//! The longest steps of a start, done while the server opens its ports (ADR 32): ONNX Runtime is opened if a model probably
//! needs it, and the schema of configurations is prepared.

use std::{
    collections::BTreeMap,
    fs, io, panic,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread,
};

use galatea_engine::ControlMode;

use super::{
    libraries,
    native::{EarlyBackend, NativeBackend, Opened},
};
use crate::options::{RuntimeOptions, ServeOptions};

/// Most models, and most versions of a model, that are checked. Others open their backend when they are loaded.
const MOST_LOOKED_AT: usize = 64;
/// The usual file of an ONNX model.
const ONNX_FILE: &str = "model.onnx";

/// Runs `server` on a thread of its own, and does the longest steps of its start on the caller. The caller is the first
/// thread of the process, whose heap in the C library grows in larger steps. If that fails, the server does them later. The
/// process does not end before they are done: an exit while a library is opened is not safe.
pub fn beside<T: Send + 'static>(
    mut options: ServeOptions,
    server: impl FnOnce(ServeOptions) -> T + Send + 'static,
) -> io::Result<T> {
    let _ = thread::Builder::new().name("early".to_owned()).spawn(galatea_config::prepare);
    let early = EarlyOptions::of(&options);
    let (done, opening) = mpsc::channel();
    options.early = EarlyBackend(Arc::new(Mutex::new(Some(opening))));
    let builder = thread::Builder::new().name("server".to_owned());
    let server = builder.spawn(move || server(options))?;
    let _ = done.send(early.needs_onnx().then(|| early.open()).flatten());
    server.join().or_else(|panic| panic::resume_unwind(panic))
}

/// The options that decide whether ONNX Runtime is needed, and which library it is.
struct EarlyOptions {
    runtimes: RuntimeOptions,
    settings: BTreeMap<String, String>,
    /// Paths of models, and of single model files.
    paths: Vec<PathBuf>,
    /// Names of the models to load; `None`: every model is loaded.
    models: Option<Vec<String>>,
}

impl EarlyOptions {
    fn of(options: &ServeOptions) -> Self {
        let engine = &options.engine;
        let is_explicit = engine.control_mode == ControlMode::Explicit;
        let all = engine.startup_models.iter().any(|model| model == "*");
        // A download takes longer than this saves.
        let runtimes = RuntimeOptions { may_download: false, ..options.runtimes.clone() };
        Self {
            runtimes,
            settings: engine.backend_config.of("onnxruntime"),
            paths: options.repositories.iter().chain(&options.paths).cloned().collect(),
            models: (is_explicit && !all).then(|| engine.startup_models.clone()),
        }
    }

    /// Returns true if a model of the start has the usual file of ONNX models, and its backend is opened in this process.
    fn needs_onnx(&self) -> bool {
        !self.settings.contains_key("isolation")
            && self.paths.iter().any(|path| self.has_onnx(path))
    }

    /// Checks a repository, a model, or a file of one. Addresses of remote repositories are not paths of this machine.
    fn has_onnx(&self, path: &Path) -> bool {
        let is_file =
            path.extension().is_some_and(|extension| extension == "onnx") && path.is_file();
        let of_model =
            |model: &Path| entries(model).any(|version| version.join(ONNX_FILE).exists());
        is_file
            || match &self.models {
                None => {
                    entries(path).any(|model| model.join(ONNX_FILE).exists() || of_model(&model))
                }
                Some(names) => names.iter().any(|name| of_model(&path.join(name))),
            }
    }

    fn open(&self) -> Opened {
        let library = libraries::onnxruntime(&self.runtimes).ok()?;
        let native = NativeBackend::Onnx { library, settings: self.settings.clone() };
        let backend = native.open();
        Some((native, backend))
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MOST_LOOKED_AT).map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(paths: &[&Path], models: Option<&[&str]>) -> bool {
        let models = models.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        let (runtimes, settings) = (RuntimeOptions::default(), BTreeMap::new());
        EarlyOptions { runtimes, settings, paths, models }.needs_onnx()
    }

    #[test]
    fn the_onnx_library_is_opened_early_if_a_model_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path();
        let model = |name: &str, file: &str| {
            fs::create_dir_all(repository.join(name).join("1")).unwrap();
            fs::write(repository.join(name).join("1").join(file), "").unwrap();
        };
        model("other", "model.pt");
        assert!(!needs(&[repository], None));
        model("simple", "model.onnx");
        assert!(needs(&[repository], None));
        assert!(needs(&[&repository.join("simple")], None), "a model by its own path");
        assert!(needs(&[&repository.join("simple/1/model.onnx")], None), "a file");
        assert!(needs(&[repository], Some(&["other", "simple"])));
        assert!(!needs(&[repository], Some(&["other"])) && !needs(&[repository], Some(&[])));
        assert!(!needs(&[Path::new("s3://bucket/models"), &repository.join("none")], None));
    }

    #[test]
    fn isolated_models_need_no_library_in_the_server() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("m/1")).unwrap();
        fs::write(folder.path().join("m/1/model.onnx"), "").unwrap();
        let options = EarlyOptions {
            runtimes: RuntimeOptions::default(),
            settings: BTreeMap::from([("isolation".to_owned(), "process".to_owned())]),
            paths: vec![folder.path().to_owned()],
            models: None,
        };
        assert!(!options.needs_onnx());
    }
}
