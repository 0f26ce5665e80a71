//! A server on a free port with small models, and a real client.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Condvar, Mutex, mpsc},
    time::Duration,
};

use galatea_backend::{
    Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance, ResponseSender,
};
use galatea_engine::{BackendRegistry, ControlMode, Engine, EngineOptions, LocalRoot};
use galatea_frontend::FrontEnd;
use galatea_grpc::{GrpcOptions, serve};
use galatea_proto::inference::{
    InferParameter, ModelInferRequest, ModelRepositoryParameter,
    infer_parameter::ParameterChoice,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
    model_repository_parameter,
};
pub use galatea_test_support::eventually;
use galatea_types::{Cancellation, Result};
use tonic::transport::{Channel, Endpoint};

use crate::clients::GrpcInferenceServiceClient;
pub use crate::clients::HealthClient;

pub type Client = GrpcInferenceServiceClient<Channel>;

/// Holds executions back while it is shut, and reports which requests have come to it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn set(&self, is_shut: bool) {
        *self.0.0.lock().expect("gate") = is_shut;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let guard = self.0.0.lock().expect("gate");
        drop(self.0.1.wait_while(guard, |is_shut| *is_shut).expect("gate"));
    }
}

/// Answers its input once the gate is open.
#[derive(Clone)]
struct GatedBackend {
    gate: Gate,
    arrivals: mpsc::Sender<(String, Cancellation)>,
}

impl Backend for GatedBackend {
    fn name(&self) -> &str {
        "gated"
    }

    fn load(&self, _: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(self.clone()))
    }
}

impl Model for GatedBackend {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for GatedBackend {
    fn execute(&mut self, batch: &mut Batch) {
        for pending in batch.pending() {
            let cancellation = pending.context.cancellation.clone();
            let _ = self.arrivals.send((pending.request.id.clone(), cancellation));
        }
        self.gate.pass();
        for index in 0..batch.len() {
            let outputs = batch.request(index).map(|r| r.inputs.clone()).unwrap_or_default();
            let renamed = outputs.into_iter().map(|mut t| {
                t.name = "OUTPUT0".into();
                t
            });
            let renamed = renamed.collect();
            batch.respond(index, Ok(renamed));
        }
    }
}

/// Gives the sender of every request to the test, which answers for it.
#[derive(Clone)]
struct HandedOutBackend(mpsc::Sender<ResponseSender>);

impl Backend for HandedOutBackend {
    fn name(&self) -> &str {
        "handed_out"
    }

    fn load(&self, _: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(self.clone()))
    }
}

impl Model for HandedOutBackend {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for HandedOutBackend {
    fn execute(&mut self, batch: &mut Batch) {
        for taken in (0..batch.len()).filter_map(|i| batch.take(i)).collect::<Vec<_>>() {
            let _ = self.0.send(taken.responder);
        }
    }
}

pub struct Fixture {
    pub engine: Arc<Engine>,
    pub server: Option<FrontEnd>,
    pub gate: Gate,
    pub arrivals: mpsc::Receiver<(String, Cancellation)>,
    /// Senders of the requests to the model `decoupled`, in the order they were executed.
    pub senders: mpsc::Receiver<ResponseSender>,
    root: tempfile::TempDir,
}

const VECTOR: &str = "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 }\n\
                      output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: -1 }\n";
const WORDS: &str = "input { name: \"INPUT0\" data_type: TYPE_STRING dims: -1 }\n\
                     output { name: \"OUTPUT0\" data_type: TYPE_STRING dims: -1 }\n";
const LABELLED: &str = "max_batch_size: 4\n\
     input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 4 }\n\
     output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 4 label_filename: \"labels.txt\" }\n";
const SIMPLE: &str = "max_batch_size: 8\n\
     input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 16 }\n\
     input { name: \"INPUT1\" data_type: TYPE_INT32 dims: 16 }\n\
     output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 16 }\n\
     output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: 16 }\n";

fn fill(root: &Path) {
    let narrow =
        format!("dynamic_batching {{ default_queue_policy {{ max_queue_size: 1 }} }}\n{LABELLED}");
    let decoupled = format!("model_transaction_policy {{ decoupled: true }}\n{LABELLED}");
    for (name, backend, config) in [
        ("identity_fp32", "identity", VECTOR),
        ("identity_bytes", "identity", WORDS),
        ("failing", "failing", VECTOR),
        ("gated", "gated", VECTOR),
        ("labelled", "identity", LABELLED),
        ("simple", "add_sub", SIMPLE),
        ("later", "identity", VECTOR),
        ("decoupled", "handed_out", &decoupled),
        ("narrow", "gated", &narrow),
    ] {
        fs::create_dir_all(root.join(name).join("1")).expect("folder");
        let config = format!("backend: \"{backend}\"\n{config}");
        fs::write(root.join(name).join("config.pbtxt"), config).expect("config");
    }
    for name in ["labelled", "decoupled", "narrow"] {
        fs::write(root.join(name).join("labels.txt"), "cat\ndog\nbird\nfish\n").expect("labels");
    }
}

impl Fixture {
    pub fn start() -> Self {
        Self::with_options(&GrpcOptions::default())
    }

    pub fn with_options(options: &GrpcOptions) -> Self {
        let root = tempfile::tempdir().expect("temp dir");
        fill(root.path());
        let (sender, arrivals) = mpsc::channel();
        let gated = GatedBackend { gate: Gate::default(), arrivals: sender };
        let gate = gated.gate.clone();
        let mut registry = BackendRegistry::default();
        for backend in galatea_backend_builtin::ALL {
            registry.register(backend.name(), move || Ok(backend.open()));
        }
        registry.register("gated", move || Ok(Arc::new(gated.clone()) as Arc<dyn Backend>));
        let (sender, senders) = mpsc::channel();
        let handed_out = HandedOutBackend(sender);
        registry
            .register("handed_out", move || Ok(Arc::new(handed_out.clone()) as Arc<dyn Backend>));
        let all = [
            "identity_fp32",
            "identity_bytes",
            "failing",
            "gated",
            "labelled",
            "simple",
            "decoupled",
            "narrow",
        ];
        let engine = Engine::new(
            EngineOptions {
                repositories: vec![LocalRoot::at(root.path())],
                control_mode: ControlMode::Explicit,
                startup_models: all.iter().map(|&m| m.to_owned()).collect(),
                ..EngineOptions::default()
            },
            registry,
        );
        engine.load_startup_models().expect("every model loads");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let server = Some(serve(listener, &engine, options).expect("serves"));
        Self { engine, server, gate, arrivals, senders, root }
    }

    /// The next load of the model fails.
    pub fn break_model(&self, name: &str) {
        let config = self.root.path().join(name).join("config.pbtxt");
        fs::write(config, format!("backend: \"nobody\"\n{VECTOR}")).expect("config");
    }

    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().expect("running").local_addr().expect("TCP")
    }

    pub async fn channel(&self) -> Channel {
        let uri = format!("http://{}", self.address());
        Endpoint::from_shared(uri).expect("a uri").connect().await.expect("connects")
    }

    pub async fn client(&self) -> Client {
        Client::new(self.channel().await).max_decoding_message_size(1 << 30)
    }

    /// The next request to have reached the gated model.
    pub fn arrival(&self) -> (String, Cancellation) {
        self.arrivals.recv_timeout(Duration::from_secs(20)).expect("a request reaches the model")
    }
}

impl Fixture {
    /// The sender of the next request to have reached the decoupled model.
    pub fn sender(&self) -> ResponseSender {
        self.senders.recv_timeout(Duration::from_secs(20)).expect("a request reaches the model")
    }
}

pub fn floats(values: &[f32]) -> bytes::Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}

pub fn input(name: &str, data_type: &str, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: name.into(),
        datatype: data_type.into(),
        shape: shape.into(),
        ..Default::default()
    }
}

/// A good request for a model with one vector of FP32.
pub fn vector(model: &str, id: &str, values: &[f32]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: model.into(),
        id: id.into(),
        inputs: vec![input("INPUT0", "FP32", &[values.len() as i64])],
        raw_input_contents: vec![floats(values)],
        ..Default::default()
    }
}

pub fn parameter(choice: ParameterChoice) -> InferParameter {
    InferParameter { parameter_choice: Some(choice) }
}

pub fn with_parameter(
    mut request: ModelInferRequest,
    key: &str,
    choice: ParameterChoice,
) -> ModelInferRequest {
    request.parameters.insert(key.into(), parameter(choice));
    request
}

pub fn with_output(
    mut request: ModelInferRequest,
    name: &str,
    parameters: &[(&str, ParameterChoice)],
) -> ModelInferRequest {
    request.outputs.push(InferRequestedOutputTensor {
        name: name.into(),
        parameters: parameters.iter().map(|(k, c)| ((*k).into(), parameter(c.clone()))).collect(),
    });
    request
}

pub fn repository_parameter(
    choice: model_repository_parameter::ParameterChoice,
) -> ModelRepositoryParameter {
    ModelRepositoryParameter { parameter_choice: Some(choice) }
}
