//! The suite every backend passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{Fixture, Subject, model_config, run, tensors},
};
use galatea_types::DataType;
use support::{Folder, ir};

/// Keeps the folders it made until it goes.
#[derive(Default)]
struct OpenVino(std::sync::Mutex<Vec<Folder>>);

impl OpenVino {
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
            "backend: 'openvino' max_batch_size: 8 {} {}",
            tensors("input", inputs, data_type, &[-1]),
            tensors("output", outputs, data_type, &[-1]),
        ));
        Fixture::new(config, self.keep(model))
    }
}

impl Subject for OpenVino {
    fn backend(&self) -> Arc<dyn Backend> {
        support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(self.fixture(&ir::identity(data_type, &[-1, -1]), data_type, &["X"], &["X"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Fp16, Fp32, Int32};

        // What OpenVINO computes in these very types on the CPU.
        let is_known = matches!(data_type, Fp16 | Fp32 | Int32);
        let outputs = ["SUM", "DIFFERENCE"];
        let model = || ir::add_sub(data_type, &[-1, -1]);
        is_known.then(|| self.fixture(&model(), data_type, &["A", "B"], &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.fixture(b"not a model", DataType::Fp32, &["X"], &["X"]);
        Some((fixture, "model.xml".to_owned()))
    }
}

#[test]
fn conforms() {
    run(&OpenVino::default());
}
