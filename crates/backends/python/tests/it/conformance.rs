//! The conformance kit of backends, with Python models.

use std::{fs, path::PathBuf, process::Command, sync::Arc};

use galatea_backend::{
    Backend,
    testing::{self, Fixture, Subject},
};
use galatea_types::DataType;
use tempfile::TempDir;

use crate::common;

const IDENTITY: &str = r#"
import os
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # So that the kit can kill the process of an instance.
        folder = os.path.dirname(args["model_repository"])
        with open(os.path.join(folder, args["model_instance_name"]), "w") as file:
            file.write(str(os.getpid()))

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

const REPEAT: &str = r#"
import threading
import time
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            values, delays, wait = (tensor.as_numpy() for tensor in request.inputs())
            work = (request.get_response_sender(), values, delays)
            threading.Thread(target=self.answer, args=work, daemon=True).start()
            time.sleep(wait[0] / 1000)

    def answer(self, sender, values, delays):
        for index, delay in enumerate(delays):
            time.sleep(delay / 1000)
            if sender.is_cancelled():
                break
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("OUT", values[index : index + 1]),
                pb_utils.Tensor("IDX", np.array([index], np.uint32))]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"#;

struct PythonModels {
    folder: TempDir,
}

impl PythonModels {
    fn new() -> Self {
        let models = Self { folder: tempfile::tempdir().expect("folder") };
        let broken = "import nothing_of_this_name\n";
        let sources =
            [("identity", IDENTITY), ("add_sub", ADD_SUB), ("repeat", REPEAT), ("broken", broken)];
        for (name, code) in sources {
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
        let config = testing::model_config(&format!(
            "name: '{name}' backend: 'python' max_batch_size: 8 {} {}",
            testing::tensors("input", inputs, t, &[-1]),
            testing::tensors("output", outputs, t, &[-1]),
        ));
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

    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        if data_type != DataType::Int32 {
            return None;
        }
        let mut fixture = self.fixture("repeat", &[], &[], data_type);
        let data_type = data_type.config_name();
        fixture.config = testing::model_config(&format!(
            "name: 'repeat' backend: 'python' model_transaction_policy {{ decoupled: true }}
             input [ {{ name: 'IN' data_type: {data_type} dims: -1 }},
                     {{ name: 'DELAY' data_type: TYPE_UINT32 dims: -1 }},
                     {{ name: 'WAIT' data_type: TYPE_UINT32 dims: -1 }} ]
             output [ {{ name: 'OUT' data_type: {data_type} dims: -1 }},
                      {{ name: 'IDX' data_type: TYPE_UINT32 dims: -1 }} ]"
        ));
        // How long the end of an instance waits for its streams.
        fixture.backend_config.insert("stub-timeout-seconds".to_owned(), "5".to_owned());
        Some(fixture)
    }

    fn kill(&self, instance: &str) -> bool {
        let Ok(pid) = fs::read_to_string(self.folder.path().join(instance)) else { return false };
        Command::new("kill").args(["-9", &pid]).status().expect("kill runs").success()
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let fixture = self.fixture("broken", &["IN"], &["OUT"], DataType::Fp32);
        Some((fixture, "broken/1/model.py".to_owned()))
    }
}

#[test]
fn the_python_backend_conforms() {
    testing::run(&PythonModels::new());
}
