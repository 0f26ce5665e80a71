//! The suite every backend passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{Fixture, Subject, model_config, run, tensors},
};
use galatea_types::DataType;
use support::{Folder, graph};

/// Keeps the folders it made until it goes.
#[derive(Default)]
struct TensorFlow(std::sync::Mutex<Vec<Folder>>);

impl TensorFlow {
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
            "platform: 'tensorflow_savedmodel' max_batch_size: 8 {} {}",
            tensors("input", inputs, data_type, &[-1]),
            tensors("output", outputs, data_type, &[-1]),
        ));
        Fixture::new(config, self.keep(model))
    }
}

impl Subject for TensorFlow {
    fn backend(&self) -> Arc<dyn Backend> {
        support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        let model = graph::identity(data_type).bytes();
        Some(self.fixture(&model, data_type, &["X"], &["Y"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Bool, Bytes};

        let outputs = ["SUM", "DIFFERENCE"];
        let is_known = !matches!(data_type, Bool | Bytes);
        let model = || graph::add_sub(data_type).bytes();
        is_known.then(|| self.fixture(&model(), data_type, &["A", "B"], &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.fixture(b"not a model", DataType::Fp32, &["X"], &["Y"]);
        Some((fixture, "saved_model.pb".to_owned()))
    }
}

#[test]
fn conforms() {
    run(&TensorFlow::default());
}
