//! Models on disk for the tests of a backend, loaded as the server does.

#![allow(clippy::expect_used, reason = "it serves tests, which may stop where they stand")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_config::{
    ModelConfig, NormalizeContext, RawModelConfig, parse_text, resolve_backend,
    testing::{Host, model_config, tensors},
};
use galatea_types::{DataType, InferRequest, InferResponse, PreparedRequest, Result, Tensor};
use tempfile::TempDir;

use super::{Fixture, instance_spec, load_context, prepared, run_batch};
use crate::{Backend, CompletionContext, LoadContext, Model, ModelInstance, PathRules};

/// The folder of a model called `m`, with version 1. Dropping it deletes the folder.
#[derive(Debug)]
pub struct ModelFolder(TempDir);

impl ModelFolder {
    /// Creates the folder of a model that is one file of version 1, or a file in a subfolder of it.
    pub fn with_file(name: &str, content: &[u8]) -> Self {
        Self(tempfile::tempdir().expect("a folder")).and_file(name, content)
    }

    /// Adds another file to version 1.
    #[must_use]
    pub fn and_file(self, name: &str, content: &[u8]) -> Self {
        let path = self.version_dir().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
        self
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the folder of version 1.
    pub fn version_dir(&self) -> PathBuf {
        self.path().join("1")
    }
}

/// Loads models of one backend, as on a machine with GPUs 0 and 1.
#[derive(Clone)]
pub struct Loader {
    /// The backend that loads them.
    pub backend: Arc<dyn Backend>,
    /// The usual file of its models, by which the backend of a configuration is found; with a `/` for a folder.
    pub file: &'static str,
}

impl Loader {
    /// Returns the completed, checked configuration for a `config.pbtxt` (without the name).
    ///
    /// # Errors
    /// The mistake in the text or the model.
    pub fn configure(&self, folder: &ModelFolder, text: &str) -> Result<ModelConfig> {
        let raw = self.complete(folder, text, &BTreeMap::new())?;
        Host { version_files: &[self.file], gpus: &[0, 1] }.check(raw)
    }

    /// Completes a configuration with the backend.
    ///
    /// # Errors
    /// The mistake that the backend finds.
    pub fn complete(
        &self,
        folder: &ModelFolder,
        text: &str,
        backend_config: &BTreeMap<String, String>,
    ) -> Result<RawModelConfig> {
        let files = vec![self.file.to_owned()];
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
            paths: &PathRules::anywhere(),
        };
        Ok(self.backend.complete_config(raw.into(), &context)?.into_raw())
    }

    /// Completes, checks and loads a model.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn load(&self, folder: &ModelFolder, text: &str) -> Result<Box<dyn Model>> {
        self.backend.load(folder_context(folder, self.configure(folder, text)?))
    }

    /// Returns an instance of a model that loads.
    pub fn instance(&self, folder: &ModelFolder, text: &str) -> Box<dyn ModelInstance> {
        let model = self.load(folder, text).expect("loads");
        model.new_instance(&instance_spec("m", 0)).expect("instance")
    }

    /// Returns the message of the error that loading gives.
    #[track_caller]
    pub fn load_error(&self, folder: &ModelFolder, text: &str) -> String {
        self.load(folder, text).err().expect("an error").message().to_owned()
    }
}

/// Defines functions that load models for the tests of one backend. They call a [`Loader`] over `$backend`, whose models are
/// the file or folder `$file`; `model_folder` stores a model in `$stored`.
#[macro_export]
macro_rules! loading_functions {
    ($backend:expr, $file:literal, $stored:literal) => {
        fn loader() -> $crate::testing::Loader {
            $crate::testing::Loader { backend: $backend, file: $file }
        }

        pub fn model_folder(model: &[u8]) -> $crate::testing::ModelFolder {
            $crate::testing::ModelFolder::with_file($stored, model)
        }

        pub fn configure(
            folder: &$crate::testing::ModelFolder,
            text: &str,
        ) -> ::galatea_types::Result<::galatea_config::ModelConfig> {
            loader().configure(folder, text)
        }

        pub fn complete(
            folder: &$crate::testing::ModelFolder,
            text: &str,
            backend_config: &::std::collections::BTreeMap<String, String>,
        ) -> ::galatea_types::Result<::galatea_config::RawModelConfig> {
            loader().complete(folder, text, backend_config)
        }

        pub fn load(
            folder: &$crate::testing::ModelFolder,
            text: &str,
        ) -> ::galatea_types::Result<Box<dyn $crate::Model>> {
            loader().load(folder, text)
        }

        pub fn instance(
            folder: &$crate::testing::ModelFolder,
            text: &str,
        ) -> Box<dyn $crate::ModelInstance> {
            loader().instance(folder, text)
        }

        #[track_caller]
        pub fn load_error(folder: &$crate::testing::ModelFolder, text: &str) -> String {
            loader().load_error(folder, text)
        }
    };
}

/// Returns the context for loading version 1 of a folder.
pub fn folder_context(folder: &ModelFolder, config: ModelConfig) -> LoadContext {
    load_context(&Fixture::new(config, folder.path()))
}

/// The folders of the models that a [`Subject`](super::Subject) describes, deleted when this is dropped.
#[derive(Debug)]
pub struct Fixtures {
    /// The field that names the backend in a configuration: `backend: 'b'`.
    backend: &'static str,
    folders: Mutex<Vec<ModelFolder>>,
}

impl Fixtures {
    /// Creates an empty set.
    pub fn new(backend: &'static str) -> Self {
        Self { backend, folders: Mutex::default() }
    }

    /// Adds a model whose tensors all have one open dimension after the batch.
    pub fn add(
        &self,
        folder: ModelFolder,
        data_type: DataType,
        inputs: &[&str],
        outputs: &[&str],
    ) -> Fixture {
        let config = model_config(&format!(
            "{} max_batch_size: 8 {} {}",
            self.backend,
            tensors("input", inputs, data_type, &[-1]),
            tensors("output", outputs, data_type, &[-1]),
        ));
        let path = folder.path().to_path_buf();
        self.folders.lock().expect("no panic").push(folder);
        Fixture::new(config, path)
    }
}

/// Returns a request of `batch_size` items for the named outputs, or for all if none is named.
pub fn ask(batch_size: u32, inputs: Vec<Tensor>, outputs: &[&str]) -> PreparedRequest {
    let outputs = outputs.iter().map(|&name| name.into()).collect();
    prepared(InferRequest { inputs, outputs, ..InferRequest::new("m") }, batch_size)
}

/// Returns the response to one request.
///
/// # Errors
/// The error that it is answered with.
pub fn infer(instance: &mut dyn ModelInstance, request: PreparedRequest) -> Result<InferResponse> {
    run_batch(instance, vec![request]).pop().expect("one answer")
}

/// Returns the bytes of FP32 elements.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Returns the bytes of INT64 elements.
pub fn ints(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
