//! The facts about the server that a configuration is checked against.

use crate::MissingGpus;

/// The facts about the server that a configuration is checked against.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckContext<'a> {
    /// Name of the model's folder; the model's name must equal it.
    pub directory_name: &'a str,
    /// This server can run models on GPUs.
    pub supports_gpus: bool,
    /// Indices of the GPUs this server can use.
    pub available_gpus: &'a [u32],
    /// The treatment of groups whose GPUs are missing.
    pub missing_gpus: MissingGpus,
    /// Lowest CUDA compute capability of a GPU that this server uses.
    pub min_compute_capability: f64,
}
