//! The suite every backend passes.

use std::sync::Arc;

use crate::support::{model_folder, onnx};
use galatea_backend::{
    Backend,
    testing::{Fixture, Fixtures, Subject, run},
};
use galatea_types::DataType;

/// With the folders of its models.
struct Onnx(Fixtures);

impl Subject for Onnx {
    fn backend(&self) -> Arc<dyn Backend> {
        crate::support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(self.0.add(model_folder(&onnx::identity(data_type)), data_type, &["X"], &["Y"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Fp16, Fp32, Fp64, Int32, Int64};

        // ONNX Runtime adds these on the CPU.
        let is_known = matches!(data_type, Fp16 | Fp32 | Fp64 | Int32 | Int64);
        let outputs = ["SUM", "DIFFERENCE"];
        is_known.then(|| {
            self.0.add(model_folder(&onnx::add_sub(data_type)), data_type, &["A", "B"], &outputs)
        })
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.0.add(model_folder(b"not a model"), DataType::Fp32, &["X"], &["Y"]);
        Some((fixture, "model.onnx".to_owned()))
    }
}

#[test]
fn the_onnx_backend_conforms() {
    run(&Onnx(Fixtures::new("backend: 'onnxruntime'")));
}
