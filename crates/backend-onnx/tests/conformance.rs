//! The suite every backend passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{Fixture, Subject, model_config, run, tensors},
};
use galatea_types::DataType;
use support::{Folder, onnx};

/// Keeps the folders it made until it goes.
#[derive(Default)]
struct Onnx(std::sync::Mutex<Vec<Folder>>);

impl Onnx {
    fn keep(&self, model: &[u8]) -> PathBuf {
        let folder = Folder::new(model);
        let path = folder.path().to_path_buf();
        self.0.lock().unwrap().push(folder);
        path
    }

    fn fixture(
        &self,
        model: &[u8],
        data_type: DataType,
        inputs: &[&str],
        outputs: &[&str],
    ) -> Fixture {
        let config = model_config(&format!(
            "backend: 'onnxruntime' max_batch_size: 8 {} {}",
            tensors("input", inputs, data_type, &[-1]),
            tensors("output", outputs, data_type, &[-1]),
        ));
        Fixture::new(config, self.keep(model))
    }
}

impl Subject for Onnx {
    fn backend(&self) -> Arc<dyn Backend> {
        support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(self.fixture(&onnx::identity(data_type), data_type, &["X"], &["Y"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Fp16, Fp32, Fp64, Int32, Int64};

        // ONNX Runtime adds these on the CPU.
        let is_known = matches!(data_type, Fp16 | Fp32 | Fp64 | Int32 | Int64);
        let outputs = ["SUM", "DIFFERENCE"];
        is_known.then(|| self.fixture(&onnx::add_sub(data_type), data_type, &["A", "B"], &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.fixture(b"not a model", DataType::Fp32, &["X"], &["Y"]);
        Some((fixture, "model.onnx".to_owned()))
    }
}

#[test]
fn conforms() {
    run(&Onnx::default());
}
