//! An engine with models, whose counters and clock tests set.

use std::{fs, sync::Arc, time::Duration};

use galatea_engine::{
    BackendRegistry, ControlMode, Engine, EngineOptions, LoadOverrides, LocalRoot,
};
use galatea_telemetry::{BatchRecord, FailureReason, RequestRecord};
use galatea_types::ManualClock;
use tempfile::TempDir;

const CONFIG: &str = r#"
backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] }
"#;

pub(crate) struct TestEngine {
    pub engine: Arc<Engine>,
    pub time: ManualClock,
    _root: TempDir,
}

impl TestEngine {
    pub fn with(names: &[&str]) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::create_dir_all(root.path().join(name).join("1")).expect("a folder");
            fs::write(root.path().join(name).join("config.pbtxt"), CONFIG).expect("written");
        }
        let mut registry = BackendRegistry::default();
        for backend in galatea_backend_builtin::ALL {
            registry.register(backend.name(), move || Ok(backend.open()));
        }
        let time = ManualClock::new();
        let options = EngineOptions {
            control_mode: ControlMode::Explicit,
            repositories: vec![LocalRoot::at(root.path())],
            clock: time.clock(),
            ..EngineOptions::default()
        };
        let engine = Engine::new(options, registry);
        engine.load_startup_models().expect("a start");
        let server = Self { engine, time, _root: root };
        names.iter().for_each(|name| server.load(name));
        server
    }

    pub fn load(&self, name: &str) {
        self.engine.load_model(name, LoadOverrides::default()).expect("loaded");
    }

    /// So many requests of 4 ms each end well in one execution, so many fail.
    pub fn work(&self, name: &str, succeeded: u64, failed: u64) {
        let model = self.engine.model(name, None).expect("ready");
        let batch =
            BatchRecord { batch_size: succeeded, inferences: succeeded, ..Default::default() };
        let request = RequestRecord { total: Duration::from_millis(4), ..Default::default() };
        if succeeded > 0 {
            let requests = (0..succeeded).map(|_| request);
            model.statistics().record_execution(&batch, requests);
        }
        for _ in 0..failed {
            model.statistics().record_failure(FailureReason::Backend, Duration::ZERO);
        }
    }
}
