use std::{fs, path::PathBuf, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{self, Fixture, Subject},
};
use galatea_config::ModelConfig;
use galatea_types::DataType;
use tempfile::TempDir;

use crate::common;

const IDENTITY: &str = r#"
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.same(r.inputs()[0])]) for r in requests]

    def same(self, tensor):
        try:
            return pb_utils.Tensor("OUT", tensor.as_numpy())
        except pb_utils.TritonModelException:
            # numpy has no BF16.
            return pb_utils.Tensor.from_dlpack("OUT", tensor)
"#;

const ADD_SUB: &str = r#"
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            a, b = (pb_utils.get_input_tensor_by_name(request, n).as_numpy() for n in "AB")
            responses.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("SUM", a + b), pb_utils.Tensor("DIFFERENCE", a - b)]))
        return responses
"#;

struct PythonModels {
    folder: TempDir,
}

impl PythonModels {
    fn new() -> Self {
        let models = Self { folder: tempfile::tempdir().expect("folder") };
        let broken = "import nothing_of_this_name\n";
        for (name, code) in [("identity", IDENTITY), ("add_sub", ADD_SUB), ("broken", broken)] {
            let version = models.path(name).join("1");
            fs::create_dir_all(&version).expect("created");
            if name != "broken" {
                fs::write(version.join("model.py"), code).expect("written");
            }
        }
        models
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fixture(&self, name: &str, inputs: &[&str], outputs: &[&str], t: DataType) -> Fixture {
        let specs =
            |names: &[&str]| names.iter().map(|n| testing::tensor_spec(n, t, [-1])).collect();
        let config = ModelConfig {
            max_batch_size: 8,
            inputs: specs(inputs),
            outputs: specs(outputs),
            ..testing::model_config(name, "python")
        };
        Fixture { backend_config: common::settings(), ..Fixture::new(config, self.path(name)) }
    }
}

impl Subject for PythonModels {
    fn backend(&self) -> Arc<dyn Backend> {
        common::backend()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(self.fixture("identity", &["IN"], &["OUT"], data_type))
    }

    /// For some of the types numpy adds and subtracts: every model of the kit starts a process many times.
    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        matches!(data_type, DataType::Uint16 | DataType::Int64 | DataType::Fp16)
            .then(|| self.fixture("add_sub", &["A", "B"], &["SUM", "DIFFERENCE"], data_type))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.fixture("broken", &["IN"], &["OUT"], DataType::Fp32);
        Some((fixture, "broken/1/model.py".to_owned()))
    }
}

#[test]
fn keeps_the_contract_of_backends() {
    testing::run(&PythonModels::new());
}
