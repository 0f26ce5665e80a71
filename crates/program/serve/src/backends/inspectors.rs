//! The inspectors of each backend's models.

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{Backend, CompletionContext, Inspector};
use galatea_backend_c::{LIBRARIES, LibraryInspector};
use galatea_backend_onnx::OnnxInspector;
use galatea_backend_openvino::OpenVinoInspector;
use galatea_backend_python::{PythonInspector, environment::find_python_backend};
use galatea_backend_tensorflow::TensorFlowInspector;
use galatea_backend_torch::TorchInspector;
use galatea_config::{ConfigDraft, ModelConfig};
use galatea_engine::{BackendSettings, InspectorRegistry};
use galatea_types::{Environment, Result};

/// Returns an inspector for every backend that `serve` offers, under the same names.
pub fn registry(
    settings: &BackendSettings,
    backend_directory: PathBuf,
    variables: &Environment,
) -> InspectorRegistry {
    let mut registry = InspectorRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        registry.register_unlisted(backend.name(), move || Ok(Arc::new(BuiltIn(backend.open()))));
    }
    registry.register("onnxruntime", || Ok(Arc::new(OnnxInspector)));
    registry.register("tensorflow", || Ok(Arc::new(TensorFlowInspector)));
    registry.register("openvino", || Ok(Arc::new(OpenVinoInspector)));
    registry.register("pytorch", || Ok(Arc::new(TorchInspector)));
    let own = settings.of("python");
    let path = variables.clone();
    registry.register("python", move || {
        Ok(Arc::new(PythonInspector::new(None, own.clone(), path.clone())))
    });
    let (settings, path) = (settings.clone(), variables.clone());
    registry.search(super::searched_files(backend_directory.clone()), move |name| {
        let library = |name: &str| -> Arc<dyn Inspector> {
            Arc::new(LibraryInspector::new(name, backend_directory.clone()))
        };
        if let Some(backend) = LIBRARIES.name_of(name) {
            return Some(Ok(library(backend)));
        }
        if LIBRARIES.find(&backend_directory, name).is_some() {
            return Some(Ok(library(name)));
        }
        let files = find_python_backend(&backend_directory, name)?;
        let settings = settings.overlaid(&["python", name]);
        Some(Ok(Arc::new(PythonInspector::new(Some(files), settings, path.clone()))))
    });
    registry
}

/// The inspector of a backend that is part of the program. It opens nothing, and its models have no files.
struct BuiltIn(Arc<dyn Backend>);

impl Inspector for BuiltIn {
    fn has_runtime(&self, runtime: &str) -> bool {
        self.0.has_runtime(runtime)
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        self.0.complete_config(config, context)
    }

    fn inspect(&self, _: &ModelConfig, _: &CompletionContext<'_>) -> Result<()> {
        Ok(())
    }
}
