//! Inspects models for PyTorch without libtorch.

use galatea_backend::{CompletionContext, Inspector};
use galatea_config::ModelConfig;
use galatea_types::Result;

use crate::{
    is_package,
    model::{check_types, find_model},
    settings::Settings,
};

/// Inspector of models before the backend `pytorch` loads them. Neither TorchScript nor a package states types and shapes,
/// so a configuration stays as it is.
#[derive(Debug, Default)]
pub struct TorchInspector;

impl Inspector for TorchInspector {
    fn has_runtime(&self, runtime: &str) -> bool {
        runtime == "libtriton_pytorch.so"
    }

    fn inspect(&self, config: &ModelConfig, context: &CompletionContext<'_>) -> Result<()> {
        check_types(config)?;
        let default = if is_package(config) { "model.pt2" } else { "model.pt" };
        find_model(context.version_dir, config, default)?;
        Settings::check(config)
    }
}
