//! How many executions a second several instances of a model do, without a server around them:
//! `cargo run --release -p galatea-backend-tensorflow --example execute MODEL_FOLDER INSTANCES [PARAMETER=VALUE ...]`, of
//! a SavedModel with one float32 input whose dimensions are fixed. What ADR 24 has of threads was measured so.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    env,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Backend, CompletionContext, LoadContext, Model, ModelInstance, PathRules, ServerAccess,
    testing::{Host, instance_spec, request, run_batch},
};
use galatea_backend_tensorflow::TensorFlowBackend;
use galatea_config::{NormalizeContext, parse_text, resolve_backend};
use galatea_runtimes::{FindOptions, Runtime, find};
use galatea_types::{DataType, Environment, Shape, Tensor};

const LENGTH: Duration = Duration::from_secs(2);

fn main() {
    galatea_backend_tensorflow::quiet();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = Path::new(arguments.first().expect("a model's folder"));
    let count: usize = arguments.get(1).map_or(1, |n| n.parse().expect("a number"));
    let (model, name, shape) = load(folder, arguments.get(2..).unwrap_or_default());
    let instances: Vec<_> = (0..count)
        .map(|i| model.new_instance(&instance_spec("m", i)).expect("an instance"))
        .collect();
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let (name, shape) = (&name, &shape);
        let running: Vec<_> = instances
            .into_iter()
            .map(|instance| scope.spawn(move || measure(instance, name, shape)))
            .collect();
        running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    times.sort();
    let rate = times.len() as f64 / LENGTH.as_secs_f64();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{count} instances: {rate:.1} a second, p50 {:?}, p99 {:?}", at(50), at(99));
}

fn measure(mut instance: Box<dyn ModelInstance>, name: &str, shape: &Shape) -> Vec<Duration> {
    let data = vec![0; shape.element_count().expect("fixed dimensions") * 4];
    let mut run = || {
        let input = Tensor::new(name, DataType::Fp32, shape.clone(), data.clone());
        let started = Instant::now();
        run_batch(&mut *instance, vec![request("m", 1, vec![input])]).remove(0).expect("an answer");
        started.elapsed()
    };
    // The first runs prepare what the later ones use.
    for _ in 0..5 {
        run();
    }
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < LENGTH {
        times.push(run());
    }
    times
}

fn load(folder: &Path, parameters: &[String]) -> (Box<dyn Model>, String, Shape) {
    let environment: Environment = env::vars_os().collect();
    let library = find(&Runtime::TENSORFLOW, &FindOptions::new(&environment)).expect("installed");
    let backend: Arc<dyn Backend> = TensorFlowBackend::open(&library).expect("opens");
    let parameters = parameters.iter().map(|parameter| {
        let (key, value) = parameter.split_once('=').expect("PARAMETER=VALUE");
        format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }} ")
    });
    let files = vec!["model.savedmodel/".to_owned()];
    let names =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[] };
    let raw = parse_text(&parameters.collect::<String>()).expect("valid");
    let raw = resolve_backend(raw, &names).expect("a SavedModel");
    let version_dir = folder.join("1");
    let context = CompletionContext {
        model_name: "m",
        model_dir: folder,
        version: 1,
        version_dir: &version_dir,
        backend_config: &Default::default(),
        paths: &PathRules::anywhere(),
    };
    let raw = backend.complete_config(raw.into(), &context).expect("completed").into_raw();
    let host = Host { version_files: &["model.savedmodel/"], gpus: &[] };
    let config = Arc::new(host.check(raw).expect("sound"));
    let spec = config.inputs().first().expect("an input").clone();
    let shape = spec.dims.with_leading(1);
    let model = backend.load(LoadContext {
        config,
        version: 1,
        model_dir: folder.to_path_buf(),
        version_dir,
        backend_config: Default::default(),
        paths: PathRules::anywhere(),
        server: ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    });
    (model.expect("loads"), spec.name.to_string(), shape)
}
