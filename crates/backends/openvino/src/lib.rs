//! Runs OpenVINO models (IR, ONNX, TensorFlow and PaddlePaddle files) with OpenVINO on the CPU. Its library is opened at run
//! time.
//!
//! # Invariants
//! - Everything unsafe is in `openvino`, a thin layer over the C interface.
//! - A model is compiled, and its weights are in memory, once, however many instances it has.
//! - Tensor bytes are not copied for a request alone, and once where several join; large results of fixed shapes are
//!   OpenVINO's own memory.
//! - No error and no integer division of the library ends the process (ADR 13): each becomes an error of that load or run.
//!   Against a crash or an abort in the library, models need `isolation`.

#![warn(missing_docs)]

mod complete;
mod file_faults;
mod header;
mod inspector;
mod instance;
mod model;
mod narrowing;
mod openvino;
mod padding;
mod settings;
mod signature;
mod threads;

#[doc(hidden)]
pub use header::read_header;
pub use inspector::OpenVinoInspector;

use std::{path::Path, sync::Arc};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model, has_all_tensors};
use galatea_config::ConfigDraft;
use galatea_types::Result;

use crate::{
    file_faults::{explained, is_ir},
    header::Header,
    instance::SharedModel,
    model::{OpenVinoModel, find_model, refused},
    openvino::{Core, Library},
    signature::Signature,
};

/// The backend `openvino`.
pub struct OpenVinoBackend {
    library: Arc<Library>,
}

impl OpenVinoBackend {
    /// Opens the C library of OpenVINO at `path`. It finds its other libraries beside itself. Errors name the path and the
    /// reason.
    pub fn open(path: &Path) -> Result<Arc<dyn Backend>> {
        let library = Library::open(path)?;
        log::info!("opened OpenVINO {} from '{}'", library.version, path.display());
        Ok(Arc::new(Self { library }))
    }
}

impl Backend for OpenVinoBackend {
    fn name(&self) -> &str {
        "openvino"
    }

    fn runtime(&self) -> Option<String> {
        Some(format!("OpenVINO {}", self.library.version))
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
        let read = Core::new(&self.library)?
            .read_model(&path)
            .map_err(|cause| explained(refused(context.model_name, cause), &path, context))?;
        // The C interface does not return layouts; only IR files have them.
        let can_batch = is_ir(&path) && Header::of_file(&path).is_ok_and(|h| h.can_batch());
        complete::complete(config, &Signature::of(&read)?, can_batch, context)
    }

    fn can_use_gpus(&self) -> bool {
        false
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let model = OpenVinoModel::load(&self.library, &context)?;
        Ok(Box::new(SharedModel(Arc::new(model))))
    }
}
