//! Runs TensorFlow models (SavedModel and GraphDef) with TensorFlow's C interface. Its library is opened at run time.
//!
//! # Invariants
//! - Everything unsafe is in `tensorflow`, a thin layer over the C interface.
//! - A model's weights are in memory once, however many instances it has, unless it asks for more sessions.
//! - Tensor bytes are not copied for a request alone, and once where several join; results are TensorFlow's own memory.
//! - The declarations of a model are read from its files, without the library.
//! - No status and no integer division of the library ends the process (ADR 13): each becomes an error of that load or run.
//!   Against a crash or an abort in the library, models need `isolation`.

#![warn(missing_docs)]

mod complete;
mod files;
mod init_operations;
mod inspector;
mod instance;
mod layout;
mod model;
mod saved_model;
mod sessions;
mod settings;
mod signature;
mod tensorflow;

pub use inspector::TensorFlowInspector;
#[doc(hidden)]
pub use saved_model::read_saved_model;
pub use tensorflow::quiet;

use std::{path::Path, sync::Arc};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model};
use galatea_config::ConfigDraft;
use galatea_types::Result;

use crate::{
    instance::SharedModel, model::TensorFlowModel, sessions::Sessions, tensorflow::Library,
};

/// The backend `tensorflow`.
pub struct TensorFlowBackend {
    library: Arc<Library>,
}

impl TensorFlowBackend {
    /// Opens the library at `path`, `libtensorflow_cc.so.2` or `libtensorflow.so.2`. Errors name the path and the reason.
    pub fn open(path: &Path) -> Result<Arc<dyn Backend>> {
        let library = Library::open(path)?;
        log::info!("opened TensorFlow {} from '{}'", library.version, path.display());
        Ok(Arc::new(Self { library }))
    }
}

impl Backend for TensorFlowBackend {
    fn name(&self) -> &str {
        "tensorflow"
    }

    fn runtime(&self) -> Option<String> {
        Some(format!("TensorFlow {}", self.library.version))
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        inspector::complete_config(config, context)
    }

    fn can_use_gpus(&self) -> bool {
        false
    }

    fn has_runtime(&self, runtime: &str) -> bool {
        inspector::is_runtime(runtime)
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let (model, session) = TensorFlowModel::load(&self.library, &context)?;
        let sessions = Sessions::new(session, model.settings.share_count);
        Ok(Box::new(SharedModel { model: Arc::new(model), sessions }))
    }
}
