//! The suite every backend passes, on isolated models.

use std::{path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{Clause, Fixture, Subject, model_config, run, tensors},
};
use galatea_types::DataType;

use crate::{
    children::{built_in, onnx, settings, signal},
    support::{Folder, onnx as models},
};

/// What is broken is found in the child of the first instance, which the kit does not make for that clause; see
/// `ends::a_broken_model_is_refused_with_its_file`.
const FOUND_LATER: &[Clause] = &[Clause::BrokenModel];

fn fixture(
    backend: &str,
    data_type: DataType,
    (inputs, outputs): (&[&str], &[&str]),
    folder: impl Into<PathBuf>,
) -> Fixture {
    let config = model_config(&format!(
        "name: '{backend}_{data_type}' backend: '{backend}' max_batch_size: 8 {} {}",
        tensors("input", inputs, data_type, &[-1]),
        tensors("output", outputs, data_type, &[-1]),
    ));
    Fixture { backend_config: settings(&[]), ..Fixture::new(config, folder) }
}

struct BuiltIn;

impl Subject for BuiltIn {
    fn backend(&self) -> Arc<dyn Backend> {
        built_in("identity")
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        let tensors = (&["INPUT0", "INPUT1"][..], &["OUTPUT0", "OUTPUT1"][..]);
        Some(fixture("identity", data_type, tensors, "unused"))
    }

    fn add_sub(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn kill(&self, instance: &str) -> bool {
        signal(instance, "KILL")
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        None
    }

    fn ignores(&self) -> &[Clause] {
        FOUND_LATER
    }
}

struct AddSub;

impl Subject for AddSub {
    fn backend(&self) -> Arc<dyn Backend> {
        built_in("add_sub")
    }

    fn identity(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        let tensors = (&["INPUT0", "INPUT1"][..], &["OUTPUT0", "OUTPUT1"][..]);
        (data_type != DataType::Bool).then(|| fixture("add_sub", data_type, tensors, "unused"))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        None
    }

    fn ignores(&self) -> &[Clause] {
        FOUND_LATER
    }
}

/// Keeps the folders it made until it goes.
#[derive(Default)]
struct Onnx(std::sync::Mutex<Vec<Folder>>);

impl Onnx {
    fn keep(&self, model: &[u8]) -> PathBuf {
        let folder = Folder::with_file("model.onnx", model);
        let path = folder.path().to_path_buf();
        self.0.lock().unwrap().push(folder);
        path
    }
}

/// For some of the types: each case opens ONNX Runtime in a process of its own.
impl Subject for Onnx {
    fn backend(&self) -> Arc<dyn Backend> {
        onnx()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        matches!(data_type, DataType::Fp32 | DataType::Bytes | DataType::Bool).then(|| {
            let folder = self.keep(&models::identity(data_type));
            fixture("onnxruntime", data_type, (&["X"], &["Y"]), folder)
        })
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        matches!(data_type, DataType::Fp16 | DataType::Int64).then(|| {
            let folder = self.keep(&models::add_sub(data_type));
            fixture("onnxruntime", data_type, (&["A", "B"], &["SUM", "DIFFERENCE"]), folder)
        })
    }

    fn kill(&self, instance: &str) -> bool {
        signal(instance, "KILL")
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        None
    }

    fn ignores(&self) -> &[Clause] {
        FOUND_LATER
    }
}

#[test]
fn isolated_identity_conforms() {
    run(&BuiltIn);
}

#[test]
fn isolated_add_sub_conforms() {
    run(&AddSub);
}

#[test]
fn isolated_onnx_conforms() {
    run(&Onnx::default());
}
