//! Runs TorchScript models and AOTInductor packages with libtorch, which is opened at run time. TorchScript uses a small C++
//! shim with a plain C interface, packages use libtorch's own stable C functions.
//!
//! The program contains the shim's source ([`SHIM`]), and compiles it against the libtorch in use, because libtorch has no
//! stable interface of its own.
//!
//! # Invariants
//! - Everything unsafe is in `torch`, a thin layer over the shim, and in a few files of `aoti`.
//! - A model's weights are in memory once per device, however many instances it has, unless it writes to them.
//! - Tensor bytes are not copied for a request alone, and once where several join; results are libtorch's own
//!   memory.
//! - No exception and no integer division of the library ends the process (ADR 13): each becomes an error of that load or
//!   run. Against a crash or an abort in the library, models need `isolation`.

#![warn(missing_docs)]

mod aoti;
mod inspector;
mod instance;
mod load_error;
mod model;
mod naming;
mod outputs;
mod places;
mod settings;
mod torch;

#[doc(hidden)]
pub use aoti::{make_unloadable, read_call_spec, read_package};
pub use inspector::TorchInspector;

use std::{path::Path, sync::Arc};

use galatea_backend::{Backend, CompletionContext, LoadContext, Model};
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_types::Result;

use crate::{
    aoti::{PackageModel, SharedPackage},
    instance::SharedModel,
    model::TorchModel,
    torch::Library,
};

/// The shim's files by name; the first is compiled.
pub const SHIM: [(&str, &str); 2] = [
    ("galatea_torch.cpp", include_str!("../shim/galatea_torch.cpp")),
    ("galatea_torch.h", include_str!("../shim/galatea_torch.h")),
];

/// The backend `pytorch`.
pub struct TorchBackend {
    library: Arc<Library>,
}

impl TorchBackend {
    /// Opens the compiled shim at `path`, and libtorch with it. `cuda` is libtorch's part for GPUs (`libtorch_cuda.so`), if
    /// it has one. Errors name the path and the reason.
    pub fn open(path: &Path, cuda: Option<&Path>) -> Result<Arc<dyn Backend>> {
        Self::with_stable_functions(path, cuda, None)
    }

    /// Opens the backend with stable C functions (`aoti_torch_*`), which packages use, from another library. Tests use it
    /// with a libtorch that is older than these functions.
    pub fn with_stable_functions(
        path: &Path,
        cuda: Option<&Path>,
        stable: Option<&Path>,
    ) -> Result<Arc<dyn Backend>> {
        let library = Library::open(path, cuda, stable)?;
        log::info!(
            "opened PyTorch {} from '{}', GPUs: {}",
            library.version,
            path.display(),
            library.cuda_devices
        );
        Ok(Arc::new(Self { library }))
    }
}

impl Backend for TorchBackend {
    fn name(&self) -> &str {
        "pytorch"
    }

    fn runtime(&self) -> Option<String> {
        Some(format!("PyTorch {}", self.library.version))
    }

    /// Returns the configuration unchanged: neither TorchScript nor a package states types and shapes. The names in a package
    /// are in the errors of [`Backend::load`].
    fn complete_config(
        &self,
        config: ConfigDraft,
        _context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        log::warn!(
            "skipping model configuration auto-complete for '{}': not supported for pytorch backend",
            config.name()
        );
        Ok(config)
    }

    fn can_use_gpus(&self) -> bool {
        self.library.cuda_devices > 0
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        if is_package(&context.config) {
            let model = PackageModel::load(&self.library, &context)?;
            return Ok(Box::new(SharedPackage(Arc::new(model))));
        }
        let model = TorchModel::load(&self.library, &context)?;
        Ok(Box::new(SharedModel(Arc::new(model))))
    }
}

fn is_package(config: &ModelConfig) -> bool {
    config.platform() == "torch_aoti" || config.default_model_filename().ends_with(".pt2")
}
