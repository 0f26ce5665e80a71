//! The backends that are not written in Python: what each is constructed from, in this process or in a child.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_backend::Backend;
use galatea_backend_onnx::OnnxBackend;
use galatea_backend_openvino::OpenVinoBackend;
use galatea_backend_tensorflow::TensorFlowBackend;
use galatea_backend_torch::TorchBackend;
use galatea_types::{Error, Result};
use serde_json::{Value, json};

/// A backend that models can be isolated from the server with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeBackend {
    /// One that is part of this program, by its name.
    BuiltIn(String),
    /// ONNX Runtime: its library, and the settings of the backend.
    Onnx { library: PathBuf, settings: BTreeMap<String, String> },
    /// TensorFlow: its library.
    TensorFlow { library: PathBuf },
    /// OpenVINO: its library.
    OpenVino { library: PathBuf },
    /// PyTorch: the compiled shim, and libtorch's part for GPUs.
    Torch { shim: PathBuf, cuda: Option<PathBuf> },
}

impl NativeBackend {
    /// Opens the library, if there is one, in this process.
    pub fn open(&self) -> Result<Arc<dyn Backend>> {
        match self {
            Self::BuiltIn(name) => {
                let mut all = galatea_backend_builtin::all().into_iter();
                let found = all.find(|(known, _)| known == name);
                found.map(|(_, construct)| construct()).ok_or_else(unknown)
            }
            Self::Onnx { library, settings } => OnnxBackend::open(library, settings),
            Self::TensorFlow { library } => TensorFlowBackend::open(library),
            Self::OpenVino { library } => OpenVinoBackend::open(library),
            Self::Torch { shim, cuda } => TorchBackend::open(shim, cuda.as_deref()),
        }
    }

    /// For a child, which reads it back.
    pub fn to_json(&self) -> Value {
        match self {
            Self::BuiltIn(name) => json!({ "built_in": name }),
            Self::Onnx { library, settings } => json!({ "onnx": library, "settings": settings }),
            Self::TensorFlow { library } => json!({ "tensorflow": library }),
            Self::OpenVino { library } => json!({ "openvino": library }),
            Self::Torch { shim, cuda } => json!({ "torch": shim, "cuda": cuda }),
        }
    }

    /// What [`NativeBackend::to_json`] wrote.
    pub fn from_json(value: &Value) -> Result<Self> {
        let text = |field| value.get(field).and_then(Value::as_str);
        if let Some(name) = text("built_in") {
            return Ok(Self::BuiltIn(name.to_owned()));
        }
        if let Some(library) = text("onnx").map(PathBuf::from) {
            let settings = value.get("settings").cloned().unwrap_or_default();
            let settings = serde_json::from_value(settings).map_err(|_| unknown())?;
            return Ok(Self::Onnx { library, settings });
        }
        if let Some(library) = text("tensorflow").map(PathBuf::from) {
            return Ok(Self::TensorFlow { library });
        }
        if let Some(library) = text("openvino").map(PathBuf::from) {
            return Ok(Self::OpenVino { library });
        }
        let shim = text("torch").map(PathBuf::from).ok_or_else(unknown)?;
        Ok(Self::Torch { shim, cuda: text("cuda").map(PathBuf::from) })
    }
}

fn unknown() -> Error {
    Error::internal("no such backend is part of this program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reads_what_the_server_wrote() {
        let settings = BTreeMap::from([("intra_op_thread_count".to_owned(), "1".to_owned())]);
        for backend in [
            NativeBackend::BuiltIn("add_sub".to_owned()),
            NativeBackend::Onnx { library: "/a/libonnxruntime.so".into(), settings },
            NativeBackend::TensorFlow { library: "/a/libtensorflow_cc.so.2".into() },
            NativeBackend::OpenVino { library: "/c/libopenvino_c.so".into() },
            NativeBackend::Torch { shim: "/b/shim.so".into(), cuda: None },
            NativeBackend::Torch { shim: "/b/shim.so".into(), cuda: Some("/b/cuda.so".into()) },
        ] {
            let read = NativeBackend::from_json(&backend.to_json());
            assert_eq!(read.expect("read"), backend);
        }
        NativeBackend::from_json(&json!({})).expect_err("nothing");
    }
}
