//! The conformance kit on backends of C.

use std::sync::{Arc, Mutex};

use galatea_backend::{
    Backend,
    testing::{Clause, Fixture, Fixtures, ModelFolder, Subject, model_config, run},
};
use galatea_types::DataType;

use crate::support::Backends;

struct Mirror {
    backend: Arc<dyn Backend>,
    fixtures: Fixtures,
    _backends: Backends,
}

impl Mirror {
    fn new() -> Self {
        let backends = Backends::compile("mirror");
        let fixtures = Fixtures::new("name: 'm' backend: 'mirror'");
        Self { backend: backends.open(), fixtures, _backends: backends }
    }
}

impl Subject for Mirror {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        let folder = ModelFolder::with_file("unused", b"");
        let (inputs, outputs) = (["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]);
        Some(self.fixtures.add(folder, data_type, &inputs, &outputs))
    }

    fn add_sub(&self, _: DataType) -> Option<Fixture> {
        None
    }

    /// The model brings a library of its own, which is none.
    fn broken(&self) -> Option<(Fixture, String)> {
        let folder = ModelFolder::with_file("libtriton_mirror.so", b"no library");
        let fixture = self.fixtures.add(folder, DataType::Fp32, &["INPUT0"], &["OUTPUT0"]);
        Some((fixture, "libtriton_mirror.so".to_owned()))
    }
}

#[test]
fn a_backend_that_answers_in_its_execution_conforms() {
    run(&Mirror::new());
}

struct Repeat {
    backend: Arc<dyn Backend>,
    folder: Mutex<Option<ModelFolder>>,
    _backends: Backends,
}

impl Subject for Repeat {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn identity(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn add_sub(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        (data_type == DataType::Int32).then(|| {
            let folder = ModelFolder::with_file("unused", b"");
            let path = folder.path().to_owned();
            *self.folder.lock().unwrap() = Some(folder);
            let config = model_config(
                "name: 'm' backend: 'repeat_threads' model_transaction_policy { decoupled: true }
                 input [ { name: 'IN' data_type: TYPE_INT32 dims: -1 },
                         { name: 'DELAY' data_type: TYPE_UINT32 dims: -1 },
                         { name: 'WAIT' data_type: TYPE_UINT32 dims: 1 } ]
                 output [ { name: 'OUT' data_type: TYPE_INT32 dims: 1 },
                          { name: 'IDX' data_type: TYPE_UINT32 dims: 1 } ]",
            );
            Fixture::new(config, path)
        })
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        None
    }

    fn ignores(&self) -> &[Clause] {
        &[]
    }
}

#[test]
fn a_backend_that_answers_from_its_own_threads_conforms() {
    let backends = Backends::compile("repeat_threads");
    run(&Repeat { backend: backends.open(), folder: Mutex::default(), _backends: backends });
}
