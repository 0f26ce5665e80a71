//! What the tests share: the library, and loading as the server does it.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

pub mod onnx;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use galatea_backend::Backend;
pub use galatea_backend::testing::{
    ModelFolder as Folder, ask, floats, folder_context as context, infer, ints,
};
use galatea_backend_onnx::OnnxBackend;
use galatea_runtimes::{FindOptions, Runtime, find};
use galatea_types::Environment;

pub fn library() -> PathBuf {
    let environment: Environment = std::env::vars_os().collect();
    find(&Runtime::ONNXRUNTIME, &FindOptions::new(&environment)).expect(
        "ONNX Runtime is not installed; run: \
         cargo run -p galatea-runtimes --example install -- onnxruntime",
    )
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    BACKEND
        .get_or_init(|| OnnxBackend::open(&library(), &BTreeMap::new()).expect("the library opens"))
        .clone()
}

galatea_backend::loading_functions!(backend(), "model.onnx", "model.onnx");
