//! What the tests share: the library, model folders on disk, and loading as the server does it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod ir;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use galatea_backend::{
    Backend, CompletionContext, LoadContext, Model, ModelInstance, ServerAccess,
    testing::{Host, instance_spec, prepared, run_batch},
};
use galatea_backend_openvino::OpenVinoBackend;
use galatea_config::{ModelConfig, NormalizeContext, RawModelConfig, parse_text, resolve_backend};
use galatea_runtimes::{Environment, FindOptions, Runtime, find};
use galatea_types::{
    InferRequest, InferResponse, PreparedRequest, RequestedOutput, Result, Tensor,
};
use tempfile::TempDir;

pub fn library() -> PathBuf {
    let environment: Environment = std::env::vars_os().collect();
    find(&Runtime::OPENVINO, &FindOptions::new(&environment)).expect(
        "OpenVINO is not installed; run: \
         cargo run -p galatea-runtimes --example install -- openvino",
    )
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    BACKEND.get_or_init(|| OpenVinoBackend::open(&library()).expect("the library opens")).clone()
}

/// The folder of a model called `m`, with version 1.
pub struct Folder(TempDir);

impl Folder {
    pub fn new(model: &[u8]) -> Self {
        Self(tempfile::tempdir().unwrap()).and_file("model.xml", model)
    }

    /// Another file of version 1.
    pub fn and_file(self, name: &str, content: &[u8]) -> Self {
        let path = self.version_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn version_dir(&self) -> PathBuf {
        self.path().join("1")
    }
}

/// From `config.pbtxt` (without the name) to the completed, checked configuration, as on a machine with GPUs 0
/// and 1.
pub fn configure(folder: &Folder, text: &str) -> Result<ModelConfig> {
    let raw = complete(folder, text, &BTreeMap::new())?;
    Host { version_files: &["model.xml"], gpus: &[0, 1] }.check(raw)
}

pub fn complete(
    folder: &Folder,
    text: &str,
    backend_config: &BTreeMap<String, String>,
) -> Result<RawModelConfig> {
    let files = vec!["model.xml".to_owned()];
    let names =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[] };
    let raw = resolve_backend(parse_text(text).expect("valid text"), &names)?;
    let version_dir = folder.version_dir();
    let context = CompletionContext {
        model_name: "model",
        model_dir: folder.path(),
        version: 1,
        version_dir: &version_dir,
        backend_config,
        paths: &galatea_backend::PathRules::anywhere(),
    };
    Ok(backend().complete_config(raw.into(), &context)?.into_raw())
}

pub fn load(folder: &Folder, text: &str) -> Result<Box<dyn Model>> {
    backend().load(LoadContext {
        config: Arc::new(configure(folder, text)?),
        version: 1,
        model_dir: folder.path().to_path_buf(),
        version_dir: folder.version_dir(),
        backend_config: BTreeMap::new(),
        paths: galatea_backend::PathRules::anywhere(),
        server: ServerAccess::default(),
    })
}

pub fn instance(folder: &Folder, text: &str) -> Box<dyn ModelInstance> {
    load(folder, text).expect("loads").new_instance(&instance_spec("m", 0)).expect("instance")
}

/// The message of the error that loading gives.
#[track_caller]
pub fn load_error(folder: &Folder, text: &str) -> String {
    load(folder, text).err().expect("an error").message().to_owned()
}

/// A request of `batch_size` items for all outputs.
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
