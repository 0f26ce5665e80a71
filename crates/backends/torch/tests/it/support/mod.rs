//! What the tests share: libtorch with its shim, model folders on disk, and loading as the server does it.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

pub mod archive;
pub mod package;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

pub use galatea_backend::testing::{
    ModelFolder as Folder, ask, floats, folder_context as context, infer,
};
use galatea_backend::{
    Backend, Model, ModelInstance,
    testing::{Host, instance_spec},
};
use galatea_backend_torch::{SHIM, TorchBackend};
use galatea_config::ModelConfig;
use galatea_runtimes::{FindOptions, Libtorch, ShimOptions, TerminalProgress, prepare_shim};
use galatea_types::{Environment, Result};

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

/// With the usual file of a model.
pub fn model_folder(script: &Script) -> Folder {
    Folder::with_file("model.pt", &script.bytes())
}

/// From `config.pbtxt` (without name and platform) to the checked configuration, as on a machine with one GPU.
pub fn configure(text: &str) -> Result<ModelConfig> {
    let host = Host { version_files: &["model.pt"], gpus: &[0] };
    host.configure(&format!("platform: \"pytorch_libtorch\"\n{text}"))
}

pub fn load(folder: &Folder, text: &str) -> Result<Box<dyn Model>> {
    backend().load(context(folder, configure(text)?))
}

pub fn instance(script: &Script, text: &str) -> Box<dyn ModelInstance> {
    let model = load(&model_folder(script), text).expect("loads");
    model.new_instance(&instance_spec("m", 0)).expect("instance")
}

/// The message of the error that loading gives.
#[track_caller]
pub fn load_error(script: &Script, text: &str) -> String {
    load(&model_folder(script), text).err().expect("an error").message().to_owned()
}
