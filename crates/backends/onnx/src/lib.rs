//! Runs ONNX models with ONNX Runtime, whose library is opened at run time.
//!
//! # Invariants
//! - Everything unsafe is in `ort`, a thin layer over the C interface.
//! - A model's weights are in memory once per device, however many instances it has there.
//! - Tensor bytes are not copied for a request alone, and once where several join. The bytes of repeated small runs are
//!   copied into kept tensors (ADR 31).
//! - No status and no integer division of the library ends the process (ADR 13): each becomes an error of that load or run.
//!   Against a crash or an abort in the library, models need `isolation`.

#![warn(missing_docs)]

mod accelerators;
mod bound_run;
mod complete;
mod file_faults;
mod header;
mod inspector;
mod instance;
mod layout;
mod model;
mod operators;
mod ort;
mod sessions;
mod settings;
mod signature;

#[cfg(test)]
extern crate self as galatea_backend_onnx;
#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod test_support;

#[doc(hidden)]
pub use header::read_header;
pub use inspector::OnnxInspector;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model, has_all_tensors};
use galatea_config::ConfigDraft;
use galatea_types::Result;

use crate::{
    file_faults::explained,
    instance::SharedModel,
    model::{OnnxModel, find_model, signature_of},
    ort::{GraphOptimizationLevel, Library, Session, SessionOptions},
    settings::operator_libraries,
};

/// The backend `onnxruntime`.
pub struct OnnxBackend {
    library: Arc<Library>,
}

impl OnnxBackend {
    /// Opens the library at `path`. `backend_config` holds the settings of `--backend-config` for this backend. Errors name
    /// the path and the reason.
    pub fn open(
        path: &Path,
        backend_config: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Backend>> {
        let library = Library::open(path, settings::global_threads(backend_config)?)?;
        log::info!("opened ONNX Runtime {} from '{}'", library.version, path.display());
        Ok(Arc::new(Self { library }))
    }
}

impl Backend for OnnxBackend {
    fn name(&self) -> &str {
        "onnxruntime"
    }

    fn runtime(&self) -> Option<String> {
        Some(format!("ONNX Runtime {}", self.library.version))
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        if has_all_tensors(&config) {
            return Ok(config);
        }
        let path = find_model(context.version_dir, config.default_model_filename(), config.name())?;
        let mut options = SessionOptions::new(&self.library)?;
        // Only the declarations are read: no time for optimising, no threads.
        options.graph_level(GraphOptimizationLevel::ORT_DISABLE_ALL)?;
        options.intra_op_threads(1)?;
        let operators = operator_libraries(config.operator_libraries(), context)?;
        operators.iter().try_for_each(|library| options.custom_operators(library))?;
        let session = Session::load(&self.library, &path, options)
            .map_err(|error| explained(error, &path, context, &self.library.version))?;
        complete::complete(config, &signature_of(&session, &path)?, context)
    }

    fn can_use_gpus(&self) -> bool {
        self.library.cuda().is_ok()
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let model = OnnxModel::load(&self.library, &context)?;
        Ok(Box::new(SharedModel(Arc::new(model))))
    }
}
