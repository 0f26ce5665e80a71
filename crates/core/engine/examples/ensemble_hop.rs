//! What a step of an ensemble costs: `cargo run --release -p galatea-engine --example ensemble_hop`.
//!
//! Chains of models that pass tensors on of several lengths are called by 1 and by 16 threads. Printed are latency
//! (p50) and CPU time of the whole process per request; the difference between two lengths is the cost of
//! the steps between them, each step's own queue and thread included.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot go on may panic")]

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use galatea_engine::{BackendRegistry, Engine, EngineOptions, LocalRoot};
use galatea_types::{DataType, InferRequest, RequestContext, Responder, Tensor};

const REQUESTS: usize = 100_000;
const LENGTHS: [usize; 4] = [1, 2, 4, 8];
const TENSORS: &str = "max_batch_size: 8\n\
    input { name: \"IN\" data_type: TYPE_FP32 dims: 16 }\n\
    output { name: \"OUT\" data_type: TYPE_FP32 dims: 16 }\n";

fn main() {
    let root = tempfile::tempdir().expect("a folder");
    for i in 0..8 {
        add(root.path(), &format!("m{i}"), &format!("backend: \"failing\"\n{TENSORS}"));
    }
    for length in LENGTHS {
        add(root.path(), &format!("chain{length}"), &chain(length));
    }
    let mut backends = BackendRegistry::default();
    // It passes tensors on as `identity` does, without response parameters to make.
    for backend in galatea_backend_builtin::ALL {
        backends.register(backend.name(), move || Ok(backend.open()));
    }
    let repositories = vec![LocalRoot::at(root.path())];
    let options = EngineOptions { repositories, ..EngineOptions::default() };
    let engine = Engine::new(options, backends);
    engine.load_startup_models().expect("all load");
    println!("clients  model     p50 us  CPU us/request");
    for clients in [1, 16] {
        measure(&engine, "m0", clients);
        for length in LENGTHS {
            measure(&engine, &format!("chain{length}"), clients);
        }
    }
}

fn add(root: &Path, name: &str, config: &str) {
    fs::create_dir_all(root.join(name).join("1")).expect("a folder");
    fs::write(root.join(name).join("config.pbtxt"), config).expect("a file");
}

fn chain(length: usize) -> String {
    let mut config = format!("platform: \"ensemble\"\n{TENSORS}ensemble_scheduling {{\n");
    for i in 0..length {
        let from = if i == 0 { "IN".to_owned() } else { format!("t{i}") };
        let to = if i + 1 == length { "OUT".to_owned() } else { format!("t{}", i + 1) };
        let step = format!(
            "step {{ model_name: \"m{i}\" model_version: -1 input_map {{ key: \"IN\" value: \"{from}\" }} \
             output_map {{ key: \"OUT\" value: \"{to}\" }} }}"
        );
        // Writing to a String cannot fail.
        let _ = writeln!(config, "{step}");
    }
    config + "}\n"
}

fn measure(engine: &Engine, name: &str, clients: usize) {
    let model = engine.model(name, None).expect("it serves");
    let input = Tensor::new("IN", DataType::Fp32, [1, 16], vec![0; 64]);
    let (cpu, count) = (cpu_time(), REQUESTS / clients);
    let client = || {
        let ask = |_| {
            let (responder, answer) = Responder::unary();
            let started = Instant::now();
            let inputs = vec![input.clone()];
            let request = InferRequest { inputs, ..InferRequest::new(name) };
            assert!(
                model.infer(request, RequestContext::new(), responder).is_ok(),
                "it fits the model"
            );
            answer.blocking_recv().expect("answered").expect("an answer");
            started.elapsed()
        };
        (0..count).map(ask).collect::<Vec<_>>()
    };
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no panic")).collect()
    });
    let cpu = cpu_time().saturating_sub(cpu);
    times.sort_unstable();
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e6;
    let each = cpu.as_secs_f64() * 1e6 / f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
    println!("{clients:7}  {name:<8}  {p50:6.1}  {each:14.2}");
}

/// User and system time of this process so far: fields 14 and 15 of its stat file, in 100ths of a second.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("the program's name in brackets");
    let ticks = fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>);
    Duration::from_millis(10 * ticks.sum::<u64>())
}
