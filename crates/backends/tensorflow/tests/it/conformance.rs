//! The suite every backend passes.

use std::sync::Arc;

use crate::support::{graph, model_folder};
use galatea_backend::{
    Backend,
    testing::{Fixture, Fixtures, Subject, run},
};
use galatea_types::DataType;

/// With the folders of its models.
struct TensorFlow(Fixtures);

impl Subject for TensorFlow {
    fn backend(&self) -> Arc<dyn Backend> {
        crate::support::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        let model = graph::identity(data_type).bytes();
        Some(self.0.add(model_folder(&model), data_type, &["X"], &["Y"]))
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        use DataType::{Bool, Bytes};

        let outputs = ["SUM", "DIFFERENCE"];
        let is_known = !matches!(data_type, Bool | Bytes);
        let model = || graph::add_sub(data_type).bytes();
        is_known.then(|| self.0.add(model_folder(&model()), data_type, &["A", "B"], &outputs))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.0.add(model_folder(b"not a model"), DataType::Fp32, &["X"], &["Y"]);
        Some((fixture, "saved_model.pb".to_owned()))
    }
}

#[test]
fn the_tensorflow_backend_conforms() {
    run(&TensorFlow(Fixtures::new("platform: 'tensorflow_savedmodel'")));
}
