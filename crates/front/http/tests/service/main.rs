//! The front end over real sockets, in front of a real engine with the built-in backends.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::expect_used)]

mod bytes;
mod chunks;
mod client;
mod cloud;
mod compression;
mod connections;
mod devices;
mod echo;
mod forwarding;
mod gate;
mod generate;
mod inference;
mod life;
mod limits;
mod lines;
mod routes;
mod sagemaker;
mod script;
mod unix_socket;

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use galatea_engine::{BackendRegistry, ControlMode, Engine, EngineOptions, LocalRoot};
use galatea_frontend::FrontEnd;
use galatea_http::{HttpOptions, serve, serve_metrics};
use tempfile::TempDir;

/// `failing` passes tensors on as `identity` does, and adds no parameters to the response.
const MODELS: [(&str, &str); 8] = [
    ("with_gate", gate::CONFIG),
    ("script", script::CONFIG),
    ("parameters", echo::CONFIG),
    (
        "identity_fp32",
        "backend: \"failing\" input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 } \
                       output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: -1 }",
    ),
    (
        "identity_bytes",
        "backend: \"failing\" input { name: \"INPUT0\" data_type: TYPE_STRING dims: -1 } \
                        output { name: \"OUTPUT0\" data_type: TYPE_STRING dims: -1 }",
    ),
    (
        "simple",
        "backend: \"add_sub\" max_batch_size: 8 dynamic_batching { } \
                input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 4 } \
                input { name: \"INPUT1\" data_type: TYPE_INT32 dims: 4 } \
                output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 4 } \
                output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: 4 }",
    ),
    (
        "labelled",
        "backend: \"failing\" max_batch_size: 4 \
                  input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 3 } \
                  output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 3 label_filename: \"labels.txt\" }",
    ),
    (
        "slow",
        "backend: \"identity\" input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 } \
              output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: -1 } \
              parameters { key: \"execute_delay_ms\" value { string_value: \"1000\" } }",
    ),
];

/// A server with its engine and its repository; all go with it.
struct Fixture {
    server: Option<FrontEnd>,
    engine: Arc<Engine>,
    address: SocketAddr,
    conductor: script::Conductor,
    gates: gate::Gates,
    _repository: TempDir,
}

impl Fixture {
    fn start() -> Self {
        Self::with(ControlMode::None, HttpOptions::default())
    }

    fn with(control_mode: ControlMode, options: HttpOptions) -> Self {
        let repository = tempfile::tempdir().expect("temp dir");
        for (name, config) in MODELS {
            let dir = repository.path().join(name);
            fs::create_dir_all(dir.join("1")).expect("version folder");
            fs::write(dir.join("config.pbtxt"), config).expect("config");
        }
        fs::write(repository.path().join("labelled/labels.txt"), "cat\ndog\nbird\n")
            .expect("labels");
        let mut backends = BackendRegistry::default();
        for backend in galatea_backend_builtin::ALL {
            backends.register(backend.name(), move || Ok(backend.open()));
        }
        let (script, conductor) = script::script();
        backends.register("script", move || Ok(Arc::new(script.clone())));
        let gates = gate::Gates::default();
        let backend = gates.clone();
        backends.register("gate", move || Ok(Arc::new(backend.clone())));
        backends.register("echo", || Ok(Arc::new(echo::Echo)));
        let engine = Engine::new(
            EngineOptions {
                repositories: vec![LocalRoot::at(repository.path())],
                control_mode,
                ..Default::default()
            },
            backends,
        );
        engine.load_startup_models().expect("models load");
        let server = serve(any_port(), &engine, &options).expect("serves");
        let address = server.local_addr().expect("TCP");
        Self { server: Some(server), engine, address, conductor, gates, _repository: repository }
    }

    fn server(&self) -> &FrontEnd {
        self.server.as_ref().expect("running")
    }

    fn shut_down(&mut self, timeout: Duration) -> usize {
        self.server.take().expect("running").shut_down(timeout)
    }

    fn metrics(&self) -> FrontEnd {
        serve_metrics(any_port(), &self.engine, &HttpOptions::default()).expect("serves")
    }
}

fn any_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}
