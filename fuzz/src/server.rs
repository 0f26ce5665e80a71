//! An engine with the built-in backends behind real front ends on Unix sockets.

use std::{
    fs,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use galatea_engine::{BackendRegistry, ControlMode, Engine, EngineOptions, LocalRoot};
use galatea_frontend::FrontEnd;
use galatea_grpc::GrpcOptions;
use galatea_http::HttpOptions;
use galatea_test_support::eventually;
use galatea_types::MemoryBudget;
use tempfile::TempDir;

use crate::{tls_files, values};

/// Nothing that is waited for takes as long.
pub const DEADLINE: Duration = Duration::from_secs(20);

const SIMPLE: &str = r#"
backend: "add_sub" max_batch_size: 8 dynamic_batching { }
input { name: "INPUT0" data_type: TYPE_INT32 dims: 4 }
input { name: "INPUT1" data_type: TYPE_INT32 dims: 4 }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 4 }
output { name: "OUTPUT1" data_type: TYPE_INT32 dims: 4 }
"#;

const LABELLED: &str = r#"
backend: "identity" max_batch_size: 4
input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 label_filename: "labels.txt" }
"#;

/// Models that connections are offered, with what they are made of.
pub const MODELS: [(&str, &str); 3] =
    [("m", values::CONFIG), ("simple", SIMPLE), ("labelled", LABELLED)];

/// Writes a model with one version.
pub fn add_model(root: &Path, name: &str, config: &str) {
    let folder = root.join(name);
    fs::create_dir_all(folder.join("1")).expect("version folder");
    fs::write(folder.join("config.pbtxt"), config).expect("configuration");
    if config.contains("labels.txt") {
        fs::write(folder.join("labels.txt"), "cat\ndog\nbird\n").expect("labels");
    }
}

/// An engine of the repository in `root`, with every built-in backend.
pub fn engine(root: &Path, control_mode: ControlMode) -> Arc<Engine> {
    engine_within(root, control_mode, MemoryBudget::unlimited())
}

/// [`engine`] whose requests and sequences count to `memory`.
pub fn engine_within(
    root: &Path,
    control_mode: ControlMode,
    memory: Arc<MemoryBudget>,
) -> Arc<Engine> {
    let mut backends = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        backends.register(backend.name(), move || Ok(backend.open()));
    }
    let options = EngineOptions {
        repositories: vec![LocalRoot::at(root)],
        control_mode,
        memory,
        ..EngineOptions::default()
    };
    Engine::new(options, backends)
}

/// A front end to connect to. It serves as long as the process runs.
pub struct Server {
    front_end: FrontEnd,
    socket: PathBuf,
    _folder: TempDir,
}

/// The HTTP front end.
pub static HTTP: LazyLock<Server> = LazyLock::new(|| {
    let options = HttpOptions { thread_count: 1, ..HttpOptions::default() };
    Server::start(|listener, engine| galatea_http::serve(listener, engine, &options))
});

/// The HTTP front end, with TLS.
pub static HTTPS: LazyLock<Server> = LazyLock::new(|| {
    let options =
        HttpOptions { thread_count: 1, tls: Some(tls_files::server()), ..HttpOptions::default() };
    Server::start(|listener, engine| galatea_http::serve(listener, engine, &options))
});

/// The gRPC front end.
pub static GRPC: LazyLock<Server> = LazyLock::new(|| {
    let options = GrpcOptions { thread_count: 1, ..GrpcOptions::default() };
    Server::start(|listener, engine| galatea_grpc::serve(listener, engine, &options))
});

impl Server {
    fn start(serve: impl FnOnce(UnixListener, &Arc<Engine>) -> std::io::Result<FrontEnd>) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().join("models");
        for (name, config) in MODELS {
            add_model(&root, name, config);
        }
        let engine = engine(&root, ControlMode::None);
        engine.load_startup_models().expect("models load");
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("binds");
        let front_end = serve(listener, &engine).expect("serves");
        Self { front_end, socket, _folder: folder }
    }

    /// A new connection.
    pub fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).expect("connects")
    }

    /// Panics unless every connection, and what was asked on it, comes to its end.
    pub fn assert_idle(&self) {
        eventually("every connection has ended", || self.front_end.open_connections() == 0);
        eventually("every request has ended", || self.front_end.requests_in_flight() == 0);
    }
}
