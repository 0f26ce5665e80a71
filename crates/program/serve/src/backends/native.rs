//! The parts of the backends that are not written in Python, for this process or a child.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, mpsc},
};

use galatea_backend::Backend;
use galatea_backend_c::{CBackend, CBackendOptions};
use galatea_backend_onnx::OnnxBackend;
use galatea_backend_openvino::OpenVinoBackend;
use galatea_backend_tensorflow::TensorFlowBackend;
use galatea_backend_torch::TorchBackend;
use galatea_types::{Error, LockExt, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A backend whose models can be isolated from the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeBackend {
    /// A backend that is part of this program, by its name.
    BuiltIn(String),
    /// ONNX Runtime: its library, and the backend's settings.
    Onnx { library: PathBuf, settings: BTreeMap<String, String> },
    /// TensorFlow: its library.
    TensorFlow { library: PathBuf },
    /// OpenVINO: its library.
    OpenVino { library: PathBuf },
    /// A library that was made for Triton.
    C(CBackendOptions),
    /// PyTorch: the compiled shim, and libtorch's part for GPUs.
    Torch { shim: PathBuf, cuda: Option<PathBuf> },
}

impl NativeBackend {
    /// Opens the library, if there is one, in this process.
    pub fn open(&self) -> Result<Arc<dyn Backend>> {
        match self {
            Self::BuiltIn(name) => galatea_backend_builtin::find(name).ok_or_else(unknown),
            Self::Onnx { library, settings } => OnnxBackend::open(library, settings),
            Self::TensorFlow { library } => TensorFlowBackend::open(library),
            Self::OpenVino { library } => OpenVinoBackend::open(library),
            Self::C(options) => CBackend::open(options.clone()),
            Self::Torch { shim, cuda } => TorchBackend::open(shim, cuda.as_deref()),
        }
    }

    /// Returns the description for a child, which reads it.
    pub fn to_json(&self) -> Result<Value> {
        serde_json::to_value(self).map_err(|error| Error::invalid_arg(error.to_string()))
    }

    /// Reads what [`NativeBackend::to_json`] wrote.
    pub fn from_json(value: &Value) -> Result<Self> {
        Self::deserialize(value).map_err(|_| unknown())
    }
}

fn unknown() -> Error {
    Error::internal("this program has no such backend")
}

/// An opened backend, and its parts.
pub type Opened = Option<(NativeBackend, Result<Arc<dyn Backend>>)>;

/// A backend that was opened early, or is being opened, and that no model has asked for yet.
#[derive(Clone, Default)]
pub struct EarlyBackend(pub(super) Arc<Mutex<Option<mpsc::Receiver<Opened>>>>);

impl fmt::Debug for EarlyBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlyBackend")
    }
}

impl EarlyBackend {
    /// Returns the backend, if it is the wanted one. Waits until it is open.
    pub(super) fn take(&self, wanted: &NativeBackend) -> Option<Result<Arc<dyn Backend>>> {
        if !matches!(wanted, NativeBackend::Onnx { .. }) {
            return None;
        }
        let opening = self.0.lock_unpoisoned().take()?;
        let (native, backend) = opening.recv().ok()??;
        (native == *wanted).then_some(backend)
    }
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
            NativeBackend::C(CBackendOptions {
                name: "dali".to_owned(),
                directory: "/b".into(),
                settings: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
                completes_config: true,
                waits_for_answers: true,
            }),
            NativeBackend::Torch { shim: "/b/shim.so".into(), cuda: None },
            NativeBackend::Torch { shim: "/b/shim.so".into(), cuda: Some("/b/cuda.so".into()) },
        ] {
            let read = NativeBackend::from_json(&backend.to_json().expect("written"));
            assert_eq!(read.expect("read"), backend);
        }
        NativeBackend::from_json(&Value::Null).expect_err("nothing");
    }

    #[test]
    fn an_early_opened_library_is_returned_once_for_the_same_path() {
        let (done, opening) = mpsc::channel();
        let early = EarlyBackend(Arc::new(Mutex::new(Some(opening))));
        let native =
            |path: &str| NativeBackend::Onnx { library: path.into(), settings: BTreeMap::new() };
        done.send(Some((native("a"), Err(Error::internal("no library"))))).unwrap();
        assert!(early.take(&NativeBackend::BuiltIn("add_sub".to_owned())).is_none());
        assert_eq!(early.take(&native("a")).unwrap().err().unwrap().message(), "no library");
        assert!(early.take(&native("a")).is_none(), "once");
        let (done, opening) = mpsc::channel();
        let early = EarlyBackend(Arc::new(Mutex::new(Some(opening))));
        done.send(None).unwrap();
        assert!(early.take(&native("a")).is_none(), "no model needs it");
    }
}
