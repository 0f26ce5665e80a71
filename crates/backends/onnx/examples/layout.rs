//! Thread layouts of one model side by side: throughput, CPU per inference, latency, memory.
//!
//! ```text
//! cargo run --release -p galatea-backend-onnx --example layout -- MODEL.onnx [--batch 1,8] [--rounds 3]
//!     [--seconds 2] [--dim 32] [--shape INPUT=1x576] [--only NAME,NAME]
//! ```
//!
//! Each layout runs in a process of its own, so that memory is its own; the rounds are interleaved and the
//! table shows medians. `--dim` is the size put where the model leaves a dimension open, `--shape` gives that
//! of one input whole (without the batch).

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, clippy::print_stdout)]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Backend, Batch, CompletionContext, LoadContext, ModelInstance,
    testing::{Host, instance_spec, pending, request},
};
use galatea_backend_onnx::OnnxBackend;
use galatea_config::{ModelConfig, NormalizeContext, RawModelConfig, parse_text, resolve_backend};
use galatea_runtimes::{FindOptions, Runtime};
use galatea_types::{DataType, Environment, Shape, Tensor};

/// One way to spread work over threads.
struct Layout {
    name: &'static str,
    what: &'static str,
    /// Written into the model's configuration.
    config: &'static str,
    /// Loads of the model, each with a session of its own.
    sessions: usize,
    callers: usize,
}

const fn layout(
    name: &'static str,
    what: &'static str,
    config: &'static str,
    sessions: usize,
    callers: usize,
) -> Layout {
    Layout { name, what, config, sessions, callers }
}

const TWO_THREADS: &str =
    r#"parameters { key: "intra_op_thread_count" value { string_value: "2" } }"#;
const ONE_THREAD: &str =
    r#"parameters { key: "intra_op_thread_count" value { string_value: "1" } }"#;
const NO_SPINNING: &str =
    r#"parameters { key: "session.intra_op.allow_spinning" value { string_value: "0" } }"#;
const SPINNING_GOES_ON: &str =
    r#"parameters { key: "session.force_spinning_stop" value { string_value: "0" } }"#;
const NO_ARENA: &str = r#"parameters { key: "enable_mem_arena" value { string_value: "0" } }"#;
const NO_PATTERN: &str = r#"parameters { key: "enable_mem_pattern" value { string_value: "0" } }"#;

const LAYOUTS: &[Layout] = &[
    layout("triton", "2 sessions x 2 spinning threads (Triton, count unset)", TWO_THREADS, 2, 2),
    layout("galatea", "1 session, overlapping runs on its pool (default here)", "", 1, 2),
    layout("galatea-nospin", "same, no spinning", NO_SPINNING, 1, 2),
    layout("galatea-spinon", "same, spinning goes on after the last run", SPINNING_GOES_ON, 1, 2),
    layout("galatea-noarena", "same, no arena", NO_ARENA, 1, 2),
    layout("galatea-nopattern", "same, no memory pattern", NO_PATTERN, 1, 2),
    layout("shared1", "1 session x 1 thread, 2 callers", ONE_THREAD, 1, 2),
    layout("shared2", "1 session x 2 spinning threads, 2 callers", TWO_THREADS, 1, 2),
    layout("own1", "2 sessions x 1 thread", ONE_THREAD, 2, 2),
    layout("lone-all", "1 session x 2 spinning threads, 1 caller (all cores)", TWO_THREADS, 1, 1),
    layout("lone-galatea", "default here, 1 caller", "", 1, 1),
    layout("lone-nospin", "default here, no spinning, 1 caller", NO_SPINNING, 1, 1),
    layout("lone-spinon", "default here, spinning goes on, 1 caller", SPINNING_GOES_ON, 1, 1),
    layout("lone1", "1 session x 1 thread, 1 caller", ONE_THREAD, 1, 1),
];

struct Options {
    model: PathBuf,
    batches: Vec<i64>,
    rounds: usize,
    seconds: f64,
    dim: i64,
    shapes: BTreeMap<String, Shape>,
    only: Vec<String>,
    /// Set in the child processes.
    child: Option<String>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            model: PathBuf::new(),
            batches: vec![1, 8],
            rounds: 3,
            seconds: 2.0,
            dim: 32,
            shapes: BTreeMap::new(),
            only: Vec::new(),
            child: None,
        };
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().expect("a value follows the option");
            match argument.as_str() {
                "--batch" => {
                    options.batches =
                        value().split(',').map(|n| n.parse().expect("a number")).collect();
                }
                "--rounds" => options.rounds = value().parse().expect("a number"),
                "--seconds" => options.seconds = value().parse().expect("a number"),
                "--dim" => options.dim = value().parse().expect("a number"),
                "--shape" => {
                    let text = value();
                    let (name, dims) = text.split_once('=').expect("INPUT=DIMxDIM");
                    let dims = dims.split('x').map(|d| d.parse::<i64>().expect("a number"));
                    options.shapes.insert(name.to_owned(), dims.collect());
                }
                "--only" => options.only = value().split(',').map(str::to_owned).collect(),
                "--child" => options.child = Some(value()),
                _ => options.model = PathBuf::from(argument),
            }
        }
        options
    }
}

fn main() {
    let options = Options::read();
    match &options.child {
        Some(name) => measure(&options, name),
        None => compare(&options),
    }
}

/// Inferences per second, CPU milliseconds per inference, milliseconds per call, MB.
type Row = [f64; 4];

fn compare(options: &Options) {
    let chosen: Vec<&Layout> = LAYOUTS
        .iter()
        .filter(|l| options.only.is_empty() || options.only.iter().any(|n| n == l.name))
        .collect();
    for &batch in &options.batches {
        let mut rows: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
        for _ in 0..options.rounds {
            for layout in &chosen {
                rows.entry(layout.name).or_default().push(run_child(options, layout.name, batch));
            }
        }
        println!("\n### {}, batch {batch}\n", options.model.display());
        println!("| layout | inferences/s | CPU ms | call ms | RSS MB |\n|---|---|---|---|---|");
        for layout in &chosen {
            let [rate, cpu, call, rss] = medians(&rows[layout.name]);
            let what = layout.what;
            println!("| {what} | {rate:.1} | {cpu:.3} | {call:.3} | {rss:.0} |");
        }
    }
}

fn medians(rows: &[Row]) -> Row {
    let mut median = Row::default();
    for (i, slot) in median.iter_mut().enumerate() {
        let mut column: Vec<f64> = rows.iter().map(|row| row[i]).collect();
        column.sort_by(f64::total_cmp);
        *slot = column[column.len() / 2];
    }
    median
}

fn run_child(options: &Options, name: &str, batch: i64) -> Row {
    let output = Command::new(env::current_exe().expect("own path"))
        .arg(&options.model)
        .args(["--child", name, "--batch", &batch.to_string()])
        .args(["--seconds", &options.seconds.to_string(), "--dim", &options.dim.to_string()])
        .args(options.shapes.iter().flat_map(|(name, shape)| {
            let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
            ["--shape".to_owned(), format!("{name}={}", dims.join("x"))]
        }))
        .output()
        .expect("the child starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| {
        panic!("layout {name}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

fn measure(options: &Options, name: &str) {
    // A panic in one thread would leave the others waiting for it.
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        std::process::exit(1);
    }));
    let layout = LAYOUTS.iter().find(|l| l.name == name).expect("a known layout");
    let batch = options.batches[0];
    let backend = open_backend();
    let folder = env::temp_dir().join(format!("galatea-layout-{}", std::process::id()));
    let context = prepare(&*backend, options, layout, &folder);
    let models: Vec<_> = (0..layout.sessions)
        .map(|_| backend.load(context.clone()).expect("the model loads"))
        .collect();
    let callers: Vec<Box<dyn ModelInstance>> = (0..layout.callers)
        .map(|i| models[i % models.len()].new_instance(&instance_spec("m", i)).expect("instance"))
        .collect();
    let inputs = Arc::new(inputs(&context.config, batch, options));
    let calls = run_callers(callers, &inputs, batch, Duration::from_secs_f64(options.seconds));
    let _ = fs::remove_dir_all(&folder);
    let inferences = calls.count as f64 * batch as f64;
    let per_call = calls.wall.as_secs_f64() * layout.callers as f64 / calls.count as f64;
    println!(
        "{} {} {} {}",
        inferences / calls.wall.as_secs_f64(),
        calls.cpu.as_secs_f64() * 1e3 / inferences,
        per_call * 1e3,
        resident_megabytes()
    );
}

fn open_backend() -> Arc<dyn Backend> {
    let environment: Environment = std::env::vars_os().collect();
    let options = FindOptions::new(&environment);
    let library = galatea_runtimes::find(&Runtime::ONNXRUNTIME, &options)
        .expect("ONNX Runtime is not installed: run `galatea runtime install onnxruntime`");
    OnnxBackend::open(&library, &BTreeMap::new()).expect("the library opens")
}

/// A model folder with a link to the model, and its checked configuration.
fn prepare(
    backend: &dyn Backend,
    options: &Options,
    layout: &Layout,
    folder: &Path,
) -> LoadContext {
    let version_dir = folder.join("1");
    fs::create_dir_all(&version_dir).expect("temporary folder");
    let target = options.model.canonicalize().expect("the model exists");
    std::os::unix::fs::symlink(target, version_dir.join("model.onnx")).expect("link");
    let text = format!("name: \"m\" {} instance_group [{{ kind: KIND_CPU }}]", layout.config);
    let raw: RawModelConfig = parse_text(&text).expect("valid text");
    let files = ["model.onnx".to_owned()];
    let names =
        NormalizeContext { directory_name: "m", version_files: &files, available_gpus: &[] };
    let raw = resolve_backend(raw, &names).expect("a backend");
    let backend_config = BTreeMap::from([("default-max-batch-size".to_owned(), "64".to_owned())]);
    let completion = CompletionContext {
        model_name: "m",
        model_dir: folder,
        version: 1,
        version_dir: &version_dir,
        backend_config: &backend_config,
        paths: &galatea_backend::PathRules::anywhere(),
    };
    let raw = backend.complete_config(raw.into(), &completion).expect("completed").into_raw();
    let config = Host::default().check(raw).expect("valid configuration");
    LoadContext {
        config: Arc::new(config),
        version: 1,
        model_dir: folder.to_path_buf(),
        version_dir,
        backend_config,
        paths: galatea_backend::PathRules::anywhere(),
        server: galatea_backend::ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    }
}

/// Tensors that make sense to most models: token numbers, masks of ones, types of zeros, small floats; a
/// single number is taken for a sampling rate.
fn inputs(config: &ModelConfig, batch: i64, options: &Options) -> Vec<Tensor> {
    let tensor = |spec: &galatea_config::TensorSpec| {
        let fill = |&d: &i64| if d < 0 { options.dim } else { d };
        let named = options.shapes.get(&*spec.name).cloned();
        let dims = named.unwrap_or_else(|| spec.dims.iter().map(fill).collect());
        let shape = if config.has_batching() { dims.with_leading(batch) } else { dims };
        let count = shape.element_count().expect("known dimensions");
        let value = |i: usize| {
            if count == 1 {
                16_000
            } else if spec.name.contains("mask") {
                1
            } else if spec.name.contains("type") {
                0
            } else {
                1000 + i as i64 * 37 % 20_000
            }
        };
        let data: Vec<u8> = (0..count).flat_map(|i| encode(spec.data_type, value(i))).collect();
        Tensor::new(spec.name.clone(), spec.data_type, shape, data)
    };
    config.inputs().iter().map(tensor).collect()
}

fn encode(data_type: DataType, value: i64) -> Vec<u8> {
    match data_type {
        DataType::Fp32 => (value as f32 / 20_000.0).to_le_bytes().to_vec(),
        DataType::Fp64 => (value as f64 / 20_000.0).to_le_bytes().to_vec(),
        integer => value.to_le_bytes()[..integer.byte_size().expect("a number type")].to_vec(),
    }
}

struct Calls {
    count: usize,
    wall: Duration,
    cpu: Duration,
}

fn run_callers(
    callers: Vec<Box<dyn ModelInstance>>,
    inputs: &Arc<Vec<Tensor>>,
    batch: i64,
    time: Duration,
) -> Calls {
    let barrier = Arc::new(Barrier::new(callers.len() + 1));
    let start = |mut caller: Box<dyn ModelInstance>| {
        let (inputs, barrier) = (inputs.clone(), barrier.clone());
        thread::spawn(move || {
            for _ in 0..5 {
                call(&mut *caller, &inputs, batch);
            }
            barrier.wait();
            let started = Instant::now();
            let mut count = 0;
            while started.elapsed() < time {
                call(&mut *caller, &inputs, batch);
                count += 1;
            }
            (count, started.elapsed())
        })
    };
    let threads: Vec<_> = callers.into_iter().map(start).collect();
    let before = cpu_time();
    barrier.wait();
    let ends: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    Calls {
        count: ends.iter().map(|(count, _)| count).sum(),
        wall: ends.iter().map(|(_, wall)| *wall).max().unwrap_or_default(),
        cpu: cpu_time() - before,
    }
}

fn call(caller: &mut dyn ModelInstance, inputs: &[Tensor], batch: i64) {
    let size = u32::try_from(batch).expect("a small batch");
    let (pending, _answer) = pending(request("m", size, inputs.to_vec()));
    let mut batch = Batch::new("m".into(), 1, vec![pending]);
    caller.execute(&mut batch);
    for (_, outcome) in batch.into_outcomes() {
        assert!(matches!(outcome, galatea_backend::Outcome::Answered(Ok(_))), "a good answer");
    }
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("procfs");
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(|n| n.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

fn resident_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|l| l.starts_with("VmRSS")).expect("VmRSS");
    let kilobytes: f64 =
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kilobytes / 1024.0
}
