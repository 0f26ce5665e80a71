//! Time of one execution of an identity model in Python, by size of the tensor: the figures of
//! docs/adr/0006-python-workers.md. `cargo run --release -p galatea-backend-python --example round_trip
//! PYTHON [PAUSE_US]`; PYTHON has numpy, PAUSE_US is the time between two requests.

#![expect(clippy::disallowed_methods, reason = "it measures times")]

use std::{
    collections::BTreeMap,
    env, fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, LoadContext, ModelInstance, Outcome, PendingRequest, ServerAccess,
    testing::{instance_spec, model_config},
};
use galatea_backend_python::{PythonBackend, WorkerRules};
use galatea_types::{
    DataType, Environment, InferRequest, PreparedRequest, RequestContext, Responder, Tensor,
};

const MODEL: &str = "
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let python = env::args().nth(1).ok_or("which Python?")?;
    let pause = env::args().nth(2).map_or(Ok(0), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("1"))?;
    fs::write(folder.path().join("1/model.py"), MODEL)?;
    let settings = BTreeMap::from([("python-interpreter".to_owned(), python)]);
    let config = model_config(
        "backend: 'python'
         input { name: 'IN' data_type: TYPE_UINT8 dims: -1 }
         output { name: 'OUT' data_type: TYPE_UINT8 dims: -1 }",
    );
    let environment: Environment = env::vars_os().collect();
    let model = PythonBackend::open(None, &settings, &environment, &WorkerRules::default())?.load(
        LoadContext {
            config: Arc::new(config),
            version: 1,
            model_dir: folder.path().to_owned(),
            version_dir: folder.path().join("1"),
            backend_config: settings,
            paths: galatea_backend::PathRules::anywhere(),
            server: ServerAccess::default(),
            devices: galatea_backend::Devices::default(),
        },
    )?;
    let started = Instant::now();
    let mut instance = model.new_instance(&instance_spec("m", 0))?;
    println!("start {:?}", started.elapsed());
    for size in [64, 16 << 10, 64 << 10, 1 << 20, 16 << 20] {
        let mut times = times(&mut *instance, size, Duration::from_micros(pause));
        times.sort();
        let percentile = |p: usize| times.get(times.len() * p / 100).copied().unwrap_or_default();
        println!(
            "{size:>9} B  p50 {:?}  p90 {:?}  p99 {:?}",
            percentile(50),
            percentile(90),
            percentile(99)
        );
    }
    Ok(())
}

fn times(instance: &mut dyn ModelInstance, size: usize, pause: Duration) -> Vec<Duration> {
    let count = if size > 1 << 18 { 300 } else { 5000 };
    let input = Tensor::new("IN", DataType::Uint8, [size as i64], vec![1; size]);
    let mut run = || {
        let request = InferRequest { inputs: vec![input.clone()], ..InferRequest::new("m") };
        let request = PreparedRequest::assume_checked(request, 1);
        let (context, responder) = (RequestContext::new(), Responder::unary().0);
        let pending = PendingRequest::new(request, context, responder);
        let mut batch = Batch::new("m".into(), 1, vec![pending]);
        let started = Instant::now();
        instance.execute(&mut batch);
        let time = started.elapsed();
        let is_answered = |outcome| matches!(outcome, Outcome::Answered(Ok(_)));
        assert!(batch.into_outcomes().all(|(_, outcome)| is_answered(outcome)));
        thread::sleep(pause);
        time
    };
    (0..count / 10).for_each(|_| {
        run();
    });
    (0..count).map(|_| run()).collect()
}
