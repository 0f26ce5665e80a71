//! The suite every backend passes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{Fixture, Subject, changed, model_config, run, tensors},
};
use galatea_types::DataType;
use support::{Folder, archive::Script};

/// Keeps the folders it made until it goes.
#[derive(Default)]
struct Torch(std::sync::Mutex<Vec<Folder>>);

impl Torch {
    fn keep(&self, folder: Folder) -> PathBuf {
        let path = folder.path().to_path_buf();
        self.0.lock().unwrap().push(folder);
        path
    }

    fn fixture(
        &self,
        folder: Folder,
        data_type: DataType,
        inputs: &[&str],
        outputs: &[&str],
    ) -> Fixture {
        let config = model_config(&format!(
            "backend: 'pytorch' max_batch_size: 8 {} {}",
            tensors("input", inputs, data_type, &[-1]),
            tensors("output", outputs, data_type, &[-1]),
        ));
        Fixture::new(config, self.keep(folder))
    }

    /// Texts are lists of one dimension, so they have no batch dimension to be joined along.
    fn text_identity(&self) -> Fixture {
        let script = Script::new("x: List[str]) -> List[str]:\n    return x");
        let fixture = self.fixture(Folder::new(&script), DataType::Bytes, &["x"], &["y"]);
        let config = changed(&fixture.config, |raw| raw.max_batch_size = 0);
        Fixture { config, ..fixture }
    }
}

fn has_tensors_of(data_type: DataType) -> bool {
    use DataType::{Bytes, Uint16, Uint32, Uint64};

    !matches!(data_type, Uint16 | Uint32 | Uint64 | Bytes)
}

impl Subject for Torch {
    fn backend(&self) -> Arc<dyn Backend> {
        support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        if data_type == DataType::Bytes {
            return Some(self.text_identity());
        }
        let script = Script::new("x: Tensor) -> Tensor:\n    return x");
        let folder = || Folder::new(&script);
        has_tensors_of(data_type).then(|| self.fixture(folder(), data_type, &["x"], &["OUTPUT__0"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        let script = Script::new(
            "a: Tensor,\n    b: Tensor) -> Tuple[Tensor, Tensor]:\n    \
             return (torch.add(a, b), torch.sub(a, b))",
        );
        // Booleans cannot be subtracted.
        let is_known = has_tensors_of(data_type) && data_type != DataType::Bool;
        let (inputs, outputs) = (["INPUT__0", "INPUT__1"], ["SUM", "DIFFERENCE"]);
        is_known.then(|| self.fixture(Folder::new(&script), data_type, &inputs, &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let folder = Folder::with_file("model.pt", b"not a model");
        let fixture = self.fixture(folder, DataType::Fp32, &["x"], &["y"]);
        Some((fixture, "model.pt".to_owned()))
    }
}

#[test]
fn conforms() {
    run(&Torch::default());
}
