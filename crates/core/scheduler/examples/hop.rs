//! What the scheduler itself costs: `cargo run --release -p galatea-scheduler --example hop`.
//!
//! An instance that does nothing answers requests of 1 and of 16 clients, which are threads or tasks of an
//! async runtime. Printed are latency (p50) and CPU time of the whole process per request, that of the clients
//! included: figures to compare with each other. The floor is a client that answers itself.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot go on ends with the reason")]

use std::{
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{
    Batch, InstanceSpec, Model, ModelInstance,
    testing::{instance_spec, model_config, prepared},
};
use galatea_scheduler::{ExecutionRules, QueueScheduler, Scheduler, SchedulerSpec, TestHold};
use galatea_telemetry::ModelStatistics;
use galatea_types::{
    DataType, InferRequest, PreparedRequest, RequestContext, Responder, Result, Tensor,
};

const REQUESTS: usize = 200_000;

struct Empty;

impl Model for Empty {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(EmptyInstance))
    }
}

struct EmptyInstance;

impl ModelInstance for EmptyInstance {
    fn execute(&mut self, batch: &mut Batch) {
        (0..batch.len()).for_each(|index| batch.respond(index, Ok(Vec::new())));
    }
}

fn main() {
    println!("clients          scheduling  instances  p50 us  CPU us/request  requests/execution");
    for is_dynamic in [false, true] {
        for instances in [1, 2] {
            for clients in [1, 16] {
                measure("threads", clients, is_dynamic, instances);
                measure("tasks", clients, is_dynamic, instances);
            }
        }
    }
    for clients in [1, 16] {
        let floor = run_threads(None, clients);
        println!("floor, {clients:2} threads                           {floor}");
    }
}

fn measure(kind: &str, clients: usize, is_dynamic: bool, instances: usize) {
    let statistics = Arc::new(ModelStatistics::default());
    let scheduler = start(is_dynamic, instances, statistics.clone());
    let figures = match kind {
        "threads" => run_threads(Some(&scheduler), clients),
        _ => run_tasks(&scheduler, clients),
    };
    let s = statistics.snapshot();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let joined = s.success.count as f64 / s.execution_count as f64;
    let scheduling = if is_dynamic { "dynamic" } else { "direct" };
    println!("{clients:2} {kind:<12}  {scheduling:<10}  {instances:<9}  {figures}  {joined:.1}");
}

fn start(
    is_dynamic: bool,
    instances: usize,
    statistics: Arc<ModelStatistics>,
) -> Arc<QueueScheduler> {
    let dynamic = if is_dynamic { "dynamic_batching {}" } else { "" };
    let config =
        model_config(&format!("name: 'empty' backend: 'empty' max_batch_size: 32 {dynamic}"));
    QueueScheduler::start(SchedulerSpec {
        config: Arc::new(config),
        version: 1,
        model: Arc::new(Empty),
        instances: (0..instances).map(|i| instance_spec("empty", i)).collect(),
        statistics,
        initial_states: Vec::new(),
        hold: TestHold::default(),
        starts_one_by_one: false,
        warm_up: Vec::new(),
        execution: ExecutionRules::default(),
    })
    .expect("it starts")
}

fn submit(scheduler: &QueueScheduler, request: PreparedRequest, responder: Responder) {
    let submitted = scheduler.submit(request, RequestContext::new(), responder);
    assert!(submitted.is_ok(), "it is open, and its queue has no limit");
}

fn new_request(model: &Arc<str>) -> PreparedRequest {
    // One without inputs has no batch size, and would fail.
    let inputs = vec![Tensor::new("x", DataType::Uint8, [1, 1], vec![0])];
    prepared(InferRequest { inputs, ..InferRequest::new(model.clone()) }, 1)
}

/// Without a scheduler each client answers itself: the cost of everything around it.
fn run_threads(scheduler: Option<&QueueScheduler>, clients: usize) -> String {
    let (cpu, count) = (cpu_time(), REQUESTS / clients);
    let model: Arc<str> = "empty".into();
    let client = || {
        let infer = |_| {
            let (responder, answer) = Responder::unary();
            let (request, started) = (new_request(&model), Instant::now());
            match scheduler {
                Some(scheduler) => submit(scheduler, request, responder),
                None => drop((request, responder)),
            }
            let _ = answer.blocking_recv();
            started.elapsed()
        };
        (0..count).map(infer).collect::<Vec<_>>()
    };
    let times = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no panic")).collect()
    });
    figures(times, cpu)
}

fn run_tasks(scheduler: &Arc<QueueScheduler>, clients: usize) -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    let (cpu, count) = (cpu_time(), REQUESTS / clients);
    let model: Arc<str> = "empty".into();
    let client = |scheduler: Arc<QueueScheduler>, model: Arc<str>| async move {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let (responder, answer) = Responder::unary();
            let (request, started) = (new_request(&model), Instant::now());
            submit(&scheduler, request, responder);
            let _ = answer.await;
            times.push(started.elapsed());
        }
        times
    };
    let tasks: Vec<_> =
        (0..clients).map(|_| runtime.spawn(client(scheduler.clone(), model.clone()))).collect();
    let join =
        |task: tokio::task::JoinHandle<Vec<Duration>>| runtime.block_on(task).expect("no panic");
    figures(tasks.into_iter().flat_map(join).collect(), cpu)
}

fn figures(mut times: Vec<Duration>, cpu_before: Duration) -> String {
    let cpu = cpu_time().saturating_sub(cpu_before);
    times.sort_unstable();
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
    let each = cpu.as_secs_f64() * 1e6 / f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
    format!("{:6.1}  {each:14.2}", p50.as_secs_f64() * 1e6)
}

/// User and system time of this process so far: fields 14 and 15 of its stat file, in 100ths of a second.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("the program's name in brackets");
    let ticks = fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>);
    Duration::from_millis(10 * ticks.sum::<u64>())
}
