//! What the tests share: libtorch with its shim, model folders on disk, and loading as the server does it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod archive;
pub mod package;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use galatea_backend::{
    Backend, LoadContext, Model, ModelInstance, ServerAccess,
    testing::{Host, instance_spec, prepared, run_batch},
};
use galatea_backend_torch::{SHIM, TorchBackend};
use galatea_config::ModelConfig;
use galatea_runtimes::{
    Environment, FindOptions, Libtorch, ShimOptions, TerminalProgress, prepare_shim,
};
use galatea_types::{
    InferRequest, InferResponse, PreparedRequest, RequestedOutput, Result, Tensor,
};
use tempfile::TempDir;

use self::archive::Script;

/// The one that `GALATEA_LIBTORCH` names, else Debian's (small and quick to load), else an installed one.
pub fn libtorch() -> Libtorch {
    let environment = environment();
    let is_named = environment.get("GALATEA_LIBTORCH").is_some();
    let system = Libtorch::of_system().filter(|_| !is_named);
    let find = || Libtorch::find(&FindOptions::new(&environment)).expect("a libtorch");
    system.or_else(find).expect(
        "libtorch is not installed; on Debian: apt-get install libtorch-dev g++ (cargo xtask setup does), or \
         name the folder of another one with GALATEA_LIBTORCH",
    )
}

fn environment() -> Environment {
    std::env::vars_os().collect()
}

pub fn shim() -> PathBuf {
    let options = ShimOptions::new(&environment());
    prepare_shim(&libtorch(), &SHIM, &options, &mut TerminalProgress::new())
        .expect("the shim compiles")
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    let open = || {
        let cuda = libtorch().cuda_library();
        TorchBackend::open(&shim(), cuda.as_deref()).expect("the shim opens")
    };
    BACKEND.get_or_init(open).clone()
}

/// The folder of a model called `m`, with version 1.
pub struct Folder(TempDir);

impl Folder {
    pub fn new(script: &Script) -> Self {
        Self::with_file("model.pt", &script.bytes())
    }

    pub fn with_file(name: &str, content: &[u8]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.version_dir()).unwrap();
        fs::write(folder.version_dir().join(name), content).unwrap();
        folder
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn version_dir(&self) -> PathBuf {
        self.path().join("1")
    }
}

/// From `config.pbtxt` (without name and platform) to the checked configuration, as on a machine with one GPU.
pub fn configure(text: &str) -> Result<ModelConfig> {
    let host = Host { version_files: &["model.pt"], gpus: &[0] };
    host.configure(&format!("platform: \"pytorch_libtorch\"\n{text}"))
}

pub fn context(folder: &Folder, config: ModelConfig) -> LoadContext {
    LoadContext {
        config: Arc::new(config),
        version: 1,
        model_dir: folder.path().to_path_buf(),
        version_dir: folder.version_dir(),
        backend_config: BTreeMap::new(),
        paths: galatea_backend::PathRules::anywhere(),
        server: ServerAccess::default(),
    }
}

pub fn load(folder: &Folder, text: &str) -> Result<Box<dyn Model>> {
    backend().load(context(folder, configure(text)?))
}

pub fn instance(script: &Script, text: &str) -> Box<dyn ModelInstance> {
    let model = load(&Folder::new(script), text).expect("loads");
    model.new_instance(&instance_spec("m", 0)).expect("instance")
}

/// The message of the error that loading gives.
#[track_caller]
pub fn load_error(script: &Script, text: &str) -> String {
    load(&Folder::new(script), text).err().expect("an error").message().to_owned()
}

/// A request of `batch_size` items for the named outputs; none named: all.
pub fn ask(batch_size: u32, inputs: Vec<Tensor>, outputs: &[&str]) -> PreparedRequest {
    let outputs = outputs.iter().map(|name| RequestedOutput::plain(*name)).collect();
    prepared(InferRequest { inputs, outputs, ..InferRequest::new("m") }, batch_size)
}

/// The answer to one request.
pub fn infer(instance: &mut dyn ModelInstance, request: PreparedRequest) -> Result<InferResponse> {
    run_batch(instance, vec![request]).pop().expect("one answer")
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
