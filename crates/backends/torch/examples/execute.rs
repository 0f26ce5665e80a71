//! What an execution takes through the backend, from requests to answers, without a server around it:
//! `cargo run --release -p galatea-backend-torch --example execute MODEL_FOLDER BATCH [PAUSE_US]`, with a float32 input
//! of fixed dimensions. Between executions it sleeps `PAUSE_US` microseconds, as an instance waits for requests.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    env, fs,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Backend, LoadContext, ModelInstance, ServerAccess,
    testing::{Host, instance_spec, request, run_batch},
};
use galatea_backend_torch::{SHIM, TorchBackend};
use galatea_config::ModelConfig;
use galatea_runtimes::{FindOptions, Libtorch, ShimOptions, TerminalProgress, prepare_shim};
use galatea_types::{DataType, Environment, Shape, Tensor};

const RUNS: usize = 4000;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = Path::new(arguments.first().expect("a model's folder"));
    let number = |at: usize| arguments.get(at).map_or(0, |n| n.parse().expect("a number"));
    let (batch, pause) = (number(1).max(1), Duration::from_micros(number(2)));
    let config = read_config(folder);
    let spec = config.inputs().first().expect("an input").clone();
    let shape = spec.dims.with_leading(i64::try_from(batch).expect("a batch size"));
    let mut instance = load(folder, config);
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            thread::sleep(pause);
            let input = tensor(&spec.name, &shape);
            let ask = request("m", u32::try_from(batch).expect("a batch size"), vec![input]);
            let started = Instant::now();
            run_batch(&mut *instance, vec![ask]).remove(0).expect("an answer");
            started.elapsed()
        })
        .collect();
    times.sort();
    let mean = times.iter().sum::<Duration>() / u32::try_from(RUNS).expect("few");
    println!("batch {batch}, pause {pause:?}: p50 {:?}, mean {mean:?}", times[RUNS / 2]);
}

fn tensor(name: &str, shape: &Shape) -> Tensor {
    let count = shape.element_count().expect("fixed dimensions");
    Tensor::new(name, DataType::Fp32, shape.clone(), vec![0; count * 4])
}

fn read_config(folder: &Path) -> ModelConfig {
    let text = fs::read_to_string(folder.join("config.pbtxt")).expect("a configuration");
    Host { version_files: &["model.pt"], gpus: &[] }.configure(&text).expect("sound")
}

fn load(folder: &Path, config: ModelConfig) -> Box<dyn ModelInstance> {
    let environment: Environment = std::env::vars_os().collect();
    let libtorch = Libtorch::find(&FindOptions::new(&environment));
    let libtorch = libtorch.expect("a libtorch").expect("installed");
    let options = ShimOptions::new(&environment);
    let shim = prepare_shim(&libtorch, &SHIM, &options, &mut TerminalProgress::new());
    let backend: Arc<dyn Backend> =
        TorchBackend::open(&shim.expect("compiles"), None).expect("opens");
    let model = backend.load(LoadContext {
        config: Arc::new(config),
        version: 1,
        model_dir: folder.to_path_buf(),
        version_dir: folder.join("1"),
        backend_config: Default::default(),
        paths: galatea_backend::PathRules::anywhere(),
        server: ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    });
    model.expect("loads").new_instance(&instance_spec("m", 0)).expect("an instance")
}
