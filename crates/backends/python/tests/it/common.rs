//! Models in Python, and an interpreter with numpy to run them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, OnceLock, mpsc},
    time::Duration,
};

use galatea_backend::{
    Backend, InstanceAlarm, InstanceSpec, Model, ModelInstance, ServerAccess,
    testing::{self, Fixture},
};
use galatea_backend_python::{PythonBackend, WorkerRules};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_types::{DataType, Environment, Error, InferResponse, PreparedRequest, Result, Tensor};
use tempfile::TempDir;

/// Limit for anything that must happen.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// An interpreter that has numpy: `GALATEA_TEST_PYTHON`, else `python3`, else one of pyenv's.
///
/// # Panics
/// When there is none; the text names how to install one.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let named = std::env::var_os("GALATEA_TEST_PYTHON").map(PathBuf::from);
        let mut candidates: Vec<PathBuf> =
            named.into_iter().chain([PathBuf::from("python3")]).collect();
        // Where `cargo xtask` keeps what the tests from outside need.
        let peers = "../../../target/peers/venv/bin/python";
        candidates.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(peers));
        let home = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
        let versions = home.and_then(|home| fs::read_dir(home.join("versions")).ok());
        let versions = versions.into_iter().flatten().flatten();
        candidates.extend(versions.map(|version| version.path().join("bin/python3")));
        candidates.into_iter().find_map(|python| executable_with_numpy(&python)).expect(
            "these tests need a Python with numpy: `python3 -m venv DIR && DIR/bin/pip install numpy`, \
             then set GALATEA_TEST_PYTHON=DIR/bin/python",
        )
    })
}

/// The full path of `python`, which starts a venv's interpreter in its venv.
fn executable_with_numpy(python: &Path) -> Option<PathBuf> {
    let code = "import numpy, sys; assert sys.version_info >= (3, 9); print(sys.executable)";
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}

pub fn settings() -> BTreeMap<String, String> {
    let python = python().to_str().expect("text").to_owned();
    BTreeMap::from([("python-interpreter".to_owned(), python)])
}

pub fn backend() -> Arc<dyn Backend> {
    let environment: Environment = std::env::vars_os().collect();
    PythonBackend::open(None, &settings(), &environment, &WorkerRules::default()).expect("opened")
}

/// A model as a test describes it.
pub struct Written {
    pub code: String,
    pub config: ModelConfig,
    pub settings: BTreeMap<String, String>,
    pub server: ServerAccess,
}

/// A loaded model and the folder it lies in.
pub struct Loaded {
    pub model: Box<dyn Model>,
    _folder: TempDir,
}

/// What all test models begin with.
const HEAD: &str = "import os, sys, threading, time\nimport numpy as np\n\
                    import triton_python_backend_utils as pb_utils\n";

impl Written {
    /// `code`: the body of the class, with four spaces before each line.
    pub fn class(code: &str) -> Self {
        Self::file(&format!("{HEAD}\n\nclass TritonPythonModel:\n{code}\n"))
    }

    /// `body`: of `execute(self, requests)`, eight spaces before each line.
    pub fn execute(body: &str) -> Self {
        Self::class(&format!("    def execute(self, requests):\n{body}"))
    }

    /// The whole file. Input IN and output OUT of any size, UINT8, no batching.
    pub fn file(code: &str) -> Self {
        let config = testing::model_config(
            "backend: 'python'
             input { name: 'IN' data_type: TYPE_UINT8 dims: -1 }
             output { name: 'OUT' data_type: TYPE_UINT8 dims: -1 }",
        );
        Self {
            code: code.to_owned(),
            config,
            settings: settings(),
            server: ServerAccess::default(),
        }
    }

    pub fn changed(mut self, change: impl FnOnce(&mut RawModelConfig)) -> Self {
        self.config = testing::changed(&self.config, change);
        self
    }

    pub fn data_type(mut self, data_type: DataType) -> Self {
        let tensor = |field, name| testing::tensors(field, [name], data_type, &[-1]);
        let (input, output) = (tensor("input", "IN"), tensor("output", "OUT"));
        self.config = testing::model_config(&format!("backend: 'python' {input} {output}"));
        self
    }

    pub fn setting(mut self, key: &str, value: &str) -> Self {
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn decoupled(self) -> Self {
        self.changed(|raw| raw.model_transaction_policy.get_or_insert_default().decoupled = true)
    }

    pub fn beside(mut self, server: ServerAccess) -> Self {
        self.server = server;
        self
    }

    pub fn write(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("1")).expect("created");
        fs::write(folder.path().join("1/model.py"), &self.code).expect("written");
        folder
    }

    pub fn try_load(self) -> Result<Loaded> {
        let folder = self.write();
        let mut fixture = Fixture::new(self.config, folder.path());
        fixture.backend_config = self.settings;
        let mut context = testing::load_context(&fixture);
        context.server = self.server;
        let model = backend().load(context)?;
        Ok(Loaded { model, _folder: folder })
    }

    pub fn load(self) -> Loaded {
        self.try_load().expect("loaded")
    }

    /// One instance, and its model.
    pub fn instance(self) -> (Box<dyn ModelInstance>, Loaded) {
        let loaded = self.load();
        (loaded.instance(0).expect("an instance"), loaded)
    }

    /// The error of making an instance.
    pub fn start_error(self) -> Error {
        self.load().instance(0).err().expect("an error")
    }
}

impl Loaded {
    pub fn instance(&self, index: usize) -> Result<Box<dyn ModelInstance>> {
        self.model.new_instance(&testing::instance_spec("m", index))
    }

    /// An instance, and where its alarm arrives.
    pub fn instance_with_alarm(&self) -> (Box<dyn ModelInstance>, mpsc::Receiver<Error>) {
        let (raised, alarms) = mpsc::channel();
        let raised = Mutex::new(raised);
        let alarm = InstanceAlarm::new(move |error| {
            let _ = raised.lock().expect("no panic").send(error);
        });
        let spec = InstanceSpec { alarm, ..testing::instance_spec("m", 0) };
        (self.model.new_instance(&spec).expect("an instance"), alarms)
    }
}

pub fn bytes(data: &[u8]) -> Tensor {
    Tensor::new("IN", DataType::Uint8, [data.len() as i64], data.to_vec())
}

pub fn request(input: Tensor) -> PreparedRequest {
    testing::request("m", 1, vec![input])
}

pub fn run(instance: &mut dyn ModelInstance, input: Tensor) -> Result<InferResponse> {
    let mut answers = testing::run_batch(instance, vec![request(input)]);
    answers.pop().expect("one answer")
}

/// The bytes of the output OUT.
pub fn output(answer: Result<InferResponse>) -> Vec<u8> {
    answer.expect("an answer").output("OUT").expect("OUT").host().expect("host memory").to_vec()
}

/// Text of the error.
#[track_caller]
pub fn error_text(answer: Result<InferResponse>) -> String {
    answer.expect_err("an error").message().to_owned()
}

/// OUT = IN for each request.
pub const IDENTITY: &str = r#"
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests
        ]
"#;
