//! The table of model files and platforms with their backends.

/// A model file that a backend finds by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// The name inside a version folder, e.g. `model.onnx`.
    pub filename: &'static str,
    /// The backend that runs it.
    pub backend: &'static str,
    /// The platform; empty for backends without one.
    pub platform: &'static str,
}

/// The model files, in the order in which a version folder is searched for them.
pub const MODEL_FILES: [ModelFile; 8] = [
    ModelFile::new("model.graphdef", "tensorflow", "tensorflow_graphdef"),
    ModelFile::new("model.savedmodel", "tensorflow", "tensorflow_savedmodel"),
    ModelFile::new("model.plan", "tensorrt", "tensorrt_plan"),
    ModelFile::new("model.onnx", "onnxruntime", "onnxruntime_onnx"),
    ModelFile::new("model.xml", "openvino", ""),
    ModelFile::new("model.pt", "pytorch", "pytorch_libtorch"),
    ModelFile::new("model.pt2", "pytorch", "torch_aoti"),
    ModelFile::new("model.py", "python", ""),
];

/// The platform of an ensemble, which has no backend.
pub const ENSEMBLE_PLATFORM: &str = "ensemble";

impl ModelFile {
    const fn new(filename: &'static str, backend: &'static str, platform: &'static str) -> Self {
        Self { filename, backend, platform }
    }

    fn has_platform(&self, platform: &str) -> bool {
        let is_alias = platform == "libtorch" && self.platform == "pytorch_libtorch";
        !self.platform.is_empty() && (self.platform == platform || is_alias)
    }
}

/// Returns the backend of a `platform`, e.g. `onnxruntime` of `onnxruntime_onnx`.
pub fn backend_for_platform(platform: &str) -> Option<&'static str> {
    model_file_for_platform(platform).map(|f| f.backend)
}

pub(crate) fn model_file_for_platform(platform: &str) -> Option<&'static ModelFile> {
    MODEL_FILES.iter().find(|f| f.has_platform(platform))
}

/// Returns the platforms of a backend.
pub(crate) fn platforms_of(backend: &str) -> impl Iterator<Item = &'static str> {
    let of_backend = MODEL_FILES.iter().filter(move |f| f.backend == backend);
    of_backend.map(|f| f.platform).filter(|platform| !platform.is_empty())
}
