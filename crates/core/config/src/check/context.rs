//! What a configuration is checked against.

use crate::MissingGpus;

/// What a configuration is checked against.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckContext<'a> {
    /// Name of the model's folder, which the model's name must equal.
    pub directory_name: &'a str,
    /// Whether this server can run anything on GPUs at all.
    pub supports_gpus: bool,
    /// Indices of the GPUs this server can use.
    pub available_gpus: &'a [u32],
    /// What becomes of groups whose GPUs are not there.
    pub missing_gpus: MissingGpus,
    /// Lowest CUDA compute capability of a GPU for this server to use it.
    pub min_compute_capability: f64,
}
