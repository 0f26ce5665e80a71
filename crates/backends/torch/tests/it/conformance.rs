//! The suite every backend passes.

use std::sync::Arc;

use crate::support::{Folder, archive::Script, model_folder};
use galatea_backend::{
    Backend,
    testing::{Fixture, Fixtures, Subject, changed, run},
};
use galatea_types::DataType;

/// With the folders of its models.
struct Torch(Fixtures);

impl Torch {
    /// Texts are lists of one dimension, so they have no batch dimension to be joined along.
    fn text_identity(&self) -> Fixture {
        let script = Script::new("x: List[str]) -> List[str]:\n    return x");
        let fixture = self.0.add(model_folder(&script), DataType::Bytes, &["x"], &["y"]);
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
        crate::support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        if data_type == DataType::Bytes {
            return Some(self.text_identity());
        }
        let script = Script::new("x: Tensor) -> Tensor:\n    return x");
        let folder = || model_folder(&script);
        has_tensors_of(data_type).then(|| self.0.add(folder(), data_type, &["x"], &["OUTPUT__0"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        let script = Script::new(
            "a: Tensor,\n    b: Tensor) -> Tuple[Tensor, Tensor]:\n    \
             return (torch.add(a, b), torch.sub(a, b))",
        );
        // Booleans cannot be subtracted.
        let is_known = has_tensors_of(data_type) && data_type != DataType::Bool;
        let (inputs, outputs) = (["INPUT__0", "INPUT__1"], ["SUM", "DIFFERENCE"]);
        is_known.then(|| self.0.add(model_folder(&script), data_type, &inputs, &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let folder = Folder::with_file("model.pt", b"not a model");
        let fixture = self.0.add(folder, DataType::Fp32, &["x"], &["y"]);
        Some((fixture, "model.pt".to_owned()))
    }
}

#[test]
fn the_pytorch_backend_conforms() {
    run(&Torch(Fixtures::new("backend: 'pytorch'")));
}
