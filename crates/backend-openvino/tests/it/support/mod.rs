//! What the tests share: the library, and loading as the server does it.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

pub mod ir;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

pub use galatea_backend::testing::{
    ModelFolder as Folder, ask, floats, folder_context as context, infer, ints,
};
use galatea_backend::{Backend, Model, ModelInstance, testing::Loader};
use galatea_backend_openvino::OpenVinoBackend;
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_runtimes::{Environment, FindOptions, Runtime, find};
use galatea_types::Result;

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

fn loader() -> Loader {
    Loader { backend: backend(), file: "model.xml" }
}

/// With the usual file of a model.
pub fn model_folder(model: &[u8]) -> Folder {
    Folder::with_file("model.xml", model)
}

pub fn configure(folder: &Folder, text: &str) -> Result<ModelConfig> {
    loader().configure(folder, text)
}

pub fn complete(
    folder: &Folder,
    text: &str,
    backend_config: &BTreeMap<String, String>,
) -> Result<RawModelConfig> {
    loader().complete(folder, text, backend_config)
}

pub fn load(folder: &Folder, text: &str) -> Result<Box<dyn Model>> {
    loader().load(folder, text)
}

pub fn instance(folder: &Folder, text: &str) -> Box<dyn ModelInstance> {
    loader().instance(folder, text)
}

/// The message of the error that loading gives.
#[track_caller]
pub fn load_error(folder: &Folder, text: &str) -> String {
    loader().load_error(folder, text)
}
