//! The suite every backend passes.

use std::sync::Arc;

use crate::support::{ir, model_folder};
use galatea_backend::{
    Backend,
    testing::{Fixture, Fixtures, Subject, run},
};
use galatea_types::DataType;

/// With the folders of its models.
struct OpenVino(Fixtures);

impl Subject for OpenVino {
    fn backend(&self) -> Arc<dyn Backend> {
        crate::support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(self.0.add(
            model_folder(&ir::identity(data_type, &[-1, -1])),
            data_type,
            &["X"],
            &["X"],
        ))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Fp16, Fp32, Int32};

        // What OpenVINO computes in these very types on the CPU.
        let is_known = matches!(data_type, Fp16 | Fp32 | Int32);
        let outputs = ["SUM", "DIFFERENCE"];
        let model = || ir::add_sub(data_type, &[-1, -1]);
        is_known.then(|| self.0.add(model_folder(&model()), data_type, &["A", "B"], &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.0.add(model_folder(b"not a model"), DataType::Fp32, &["X"], &["X"]);
        Some((fixture, "model.xml".to_owned()))
    }
}

#[test]
fn the_openvino_backend_conforms() {
    run(&OpenVino(Fixtures::new("backend: 'openvino'")));
}
