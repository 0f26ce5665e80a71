//! What the tests share: the library, and loading as the server does it.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

pub mod graph;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use galatea_backend::Backend;
pub use galatea_backend::testing::{
    ModelFolder as Folder, ask, floats, folder_context as context, infer, ints,
};
use galatea_backend_tensorflow::TensorFlowBackend;
use galatea_runtimes::{FindOptions, Runtime, find};
use galatea_types::Environment;

pub fn library() -> PathBuf {
    let environment: Environment = std::env::vars_os().collect();
    find(&Runtime::TENSORFLOW, &FindOptions::new(&environment)).expect(
        "TensorFlow is not installed; run: \
         cargo run -p galatea-runtimes --example install -- tensorflow",
    )
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    BACKEND.get_or_init(|| TensorFlowBackend::open(&library()).expect("the library opens")).clone()
}

galatea_backend::loading_functions!(
    backend(),
    "model.savedmodel/",
    "model.savedmodel/saved_model.pb"
);
