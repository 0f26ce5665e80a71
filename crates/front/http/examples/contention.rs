//! What a small request costs as more threads serve connections than there are cores: threads that lose their processor
//! while they hold a lock are what many cores would find it harder to get around.
//!
//!     cargo run --release -p galatea-http --example contention
//!
//! The clients are threads of this process, the same in every row; what they cost is in the figures. `one`: all connections
//! ask the same model, which has one instance, so that they meet at its queue; `own`: each asks a model of its own.

#![expect(clippy::disallowed_methods, reason = "it measures times")]

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_engine::{BackendRegistry, Engine, EngineOptions, LocalRoot};
use galatea_http::{HttpOptions, serve};

const CONFIG: &str = "backend: \"add_sub\" max_batch_size: 8
    input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 16 }
    input { name: \"INPUT1\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: 16 }
    instance_group { count: 1 kind: KIND_CPU }";
const CONNECTIONS: usize = 64;
const CLIENT_THREADS: usize = 2;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(1);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let repository = tempfile::tempdir()?;
    let engine = engine(repository.path())?;
    println!("cores: {}", thread::available_parallelism()?);
    println!(
        "| connection threads | models | requests/s | CPU us a request | switches a request |"
    );
    println!("|---|---|---|---|---|");
    let layouts: Vec<(usize, bool)> =
        [1, 2, 4, 16, 64].into_iter().flat_map(|n| [(n, true), (n, false)]).collect();
    let mut figures = vec![Vec::new(); layouts.len()];
    for _ in 0..ROUNDS {
        for (found, &(threads, is_one)) in figures.iter_mut().zip(&layouts) {
            found.push(round(&engine, threads, is_one)?);
        }
    }
    for (found, (threads, is_one)) in figures.iter_mut().zip(layouts) {
        let median = |pick: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = found.iter().map(pick).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        println!(
            "| {threads} | {} | {:.0} | {:.1} | {:.2} |",
            if is_one { "one" } else { "own" },
            median(|f| f.rate),
            median(|f| f.cpu),
            median(|f| f.switches)
        );
    }
    Ok(())
}

#[derive(Clone)]
struct Figures {
    rate: f64,
    cpu: f64,
    switches: f64,
}

fn engine(repository: &Path) -> Outcome<Arc<Engine>> {
    for number in 0..CONNECTIONS {
        let folder = repository.join(format!("model{number}"));
        fs::create_dir_all(folder.join("1"))?;
        fs::write(folder.join("config.pbtxt"), CONFIG)?;
    }
    let mut backends = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        backends.register(backend.name(), move || Ok(backend.open()));
    }
    let repositories = vec![LocalRoot::at(repository)];
    let engine = Engine::new(EngineOptions { repositories, ..Default::default() }, backends);
    engine.load_startup_models().map_err(|error| error.to_string())?;
    Ok(engine)
}

fn round(engine: &Arc<Engine>, threads: usize, is_one: bool) -> Outcome<Figures> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let options = HttpOptions { thread_count: threads, ..HttpOptions::default() };
    let server = serve(listener, engine, &options)?;
    let address = server.local_addr().ok_or("not a TCP port")?;
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENT_THREADS)
        .map(|client| {
            let is_over = is_over.clone();
            thread::spawn(move || ask(address, client, is_one, &is_over))
        })
        .collect();
    // Until the models are known to be quick.
    thread::sleep(ROUND / 4);
    let (begun, before) = (Instant::now(), Usage::now()?);
    thread::sleep(ROUND);
    let (took, after) = (begun.elapsed(), Usage::now()?);
    is_over.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for client in clients {
        answered += client.join().map_err(|_| "a client panicked")??;
    }
    server.shut_down(Duration::from_secs(10));
    // Clients count from their first request on.
    let share = took.as_secs_f64() / (took + ROUND / 4).as_secs_f64();
    let answered = answered as f64 * share;
    Ok(Figures {
        rate: answered / took.as_secs_f64(),
        cpu: (after.cpu - before.cpu) / answered,
        switches: (after.switches - before.switches) / answered,
    })
}

/// Sends a request on each of its connections, reads the answers, and begins again. Returns how many were answered.
fn ask(address: SocketAddr, client: usize, is_one: bool, is_over: &AtomicBool) -> Outcome<usize> {
    let mut connections = Vec::new();
    for number in (client..CONNECTIONS).step_by(CLIENT_THREADS) {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        connections.push((stream, request(if is_one { 0 } else { number })));
    }
    let (mut answered, mut answer) = (0, vec![0; 4096]);
    while !is_over.load(Ordering::Relaxed) {
        for (stream, request) in &mut connections {
            stream.write_all(request)?;
        }
        for (stream, _) in &mut connections {
            let length = stream.read(&mut answer)?;
            if !answer.get(..length).is_some_and(|answer| answer.starts_with(b"HTTP/1.1 200")) {
                return Err("not answered".into());
            }
            answered += 1;
        }
    }
    Ok(answered)
}

fn request(model: usize) -> Vec<u8> {
    let input = |name| {
        format!(
            r#"{{"name":"{name}","shape":[1,16],"datatype":"INT32","parameters":{{"binary_data_size":64}}}}"#
        )
    };
    let output = |name| format!(r#"{{"name":"{name}","parameters":{{"binary_data":true}}}}"#);
    let json = format!(
        r#"{{"inputs":[{},{}],"outputs":[{},{}]}}"#,
        input("INPUT0"),
        input("INPUT1"),
        output("OUTPUT0"),
        output("OUTPUT1")
    );
    let head = format!(
        "POST /v2/models/model{model}/infer HTTP/1.1\r\nHost: a\r\n\
         Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n",
        json.len(),
        json.len() + 128
    );
    [head.as_bytes(), json.as_bytes(), &[1; 128]].concat()
}

/// Of this process so far.
struct Usage {
    /// Microseconds.
    cpu: f64,
    switches: f64,
}

impl Usage {
    fn now() -> Outcome<Self> {
        let (mut cpu, mut switches) = (0.0, 0.0);
        for task in fs::read_dir("/proc/self/task")? {
            let folder = task?.path();
            // A thread may have ended in between.
            let read = |file| fs::read_to_string(folder.join(file)).unwrap_or_default();
            let nanos = read("schedstat");
            cpu += nanos.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e3;
            let of_lines = read("status");
            let counts = of_lines.lines().filter_map(|line| line.split_once("ctxt_switches:\t"));
            switches += counts.filter_map(|(_, n)| n.parse::<f64>().ok()).sum::<f64>();
        }
        Ok(Self { cpu, switches })
    }
}
