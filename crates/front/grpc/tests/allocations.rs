//! How much memory is allocated for a small request that is repeated on one connection, by all threads of the server.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::unwrap_used)]

use std::{
    alloc::System,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use galatea_engine::{BackendRegistry, Engine, EngineOptions, LocalRoot};
use galatea_grpc::{GrpcOptions, serve};
use galatea_proto::inference::{ModelInferRequest, model_infer_request::InferInputTensor};
use prost::Message;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CONFIG: &str = "backend: \"add_sub\" max_batch_size: 8
    input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 16 }
    input { name: \"INPUT1\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: 16 }";

/// More than it takes until the request is known and executed without another thread.
const WARM_UP: u32 = 200;
const REQUESTS: u32 = 500;
/// Blocks of one request. The goal is 5; of the others h2 and its headers have the greater part, of which the two that each call
/// has here, written out and in no table of the connection, take four. The
/// decoded call is one: boxed, it is not copied on its way through futures and results.
const MOST: f64 = 29.5;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const HEAD: usize = 9;

fn engine(repository: &std::path::Path) -> Arc<Engine> {
    fs::create_dir_all(repository.join("simple/1")).unwrap();
    fs::write(repository.join("simple/config.pbtxt"), CONFIG).unwrap();
    let mut backends = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        backends.register(backend.name(), move || Ok(backend.open()));
    }
    let repositories = vec![LocalRoot::at(repository)];
    let engine = Engine::new(EngineOptions { repositories, ..Default::default() }, backends);
    engine.load_startup_models().unwrap();
    engine
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 0], payload].concat()
}

/// The frames of a call, and where the numbers of its stream stand.
fn call() -> (Vec<u8>, [usize; 2]) {
    let mut head = vec![0x83, 0x86];
    for (name, value) in [(4_u8, "/inference.GRPCInferenceService/ModelInfer"), (1, "a")] {
        head.extend([name, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    // `te: trailers`, `content-type: application/grpc`
    head.extend(b"\x00\x02te\x08trailers\x0f\x10\x10application/grpc");
    let input = |name: &str| InferInputTensor {
        name: name.to_owned(),
        datatype: "INT32".to_owned(),
        shape: vec![1, 16],
        ..Default::default()
    };
    let message = ModelInferRequest {
        model_name: "simple".to_owned(),
        inputs: vec![input("INPUT0"), input("INPUT1")],
        raw_input_contents: vec![vec![1; 64].into(), vec![1; 64].into()],
        ..Default::default()
    };
    let message = message.encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    let headers = frame(HEADERS, END_HEADERS, &head);
    let data = frame(DATA, END_STREAM, &[&[0], &length[..], &message].concat());
    let data_at = headers.len();
    // What was read may be sent again.
    let window = frame(WINDOW_UPDATE, 0, &1024_u32.to_be_bytes());
    ([headers, data, window].concat(), [5, data_at + 5])
}

struct Client {
    stream: TcpStream,
    call: Vec<u8>,
    numbers: [usize; 2],
    /// Number of the next stream.
    next: u32,
    payload: Vec<u8>,
}

impl Client {
    /// One call, without an allocation.
    fn call(&mut self) {
        for at in self.numbers {
            self.call[at..at + 4].copy_from_slice(&self.next.to_be_bytes());
        }
        self.next += 2;
        self.stream.write_all(&self.call).unwrap();
        let mut data = 0;
        loop {
            let mut head = [0; HEAD];
            self.stream.read_exact(&mut head).unwrap();
            let [a, b, c, kind, flags, ..] = head;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            self.stream.read_exact(&mut self.payload[..length]).unwrap();
            data += if kind == DATA { length } else { 0 };
            if kind == HEADERS && flags & END_STREAM != 0 {
                // Two outputs of 64 bytes, and what describes them.
                assert!(data > 128, "an answer");
                return;
            }
        }
    }
}

#[test]
fn a_repeated_small_request_allocates_little() {
    let repository = tempfile::tempdir().unwrap();
    let engine = engine(repository.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = serve(listener, &engine, &GrpcOptions::default()).unwrap();
    let mut stream = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, &[])).unwrap();
    stream.write_all(&frame(SETTINGS, 1, &[])).unwrap();
    let (call, numbers) = call();
    let mut client = Client { stream, call, numbers, next: 1, payload: vec![0; 1 << 16] };
    for _ in 0..WARM_UP {
        client.call();
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..REQUESTS {
        client.call();
    }
    let change = region.change();
    let blocks = (change.allocations + change.reallocations) as f64 / f64::from(REQUESTS);
    println!("{blocks:.1} blocks are allocated for a request over gRPC");
    assert!(blocks < MOST, "{blocks:.1} blocks are allocated for a request");
    server.shut_down(Duration::from_secs(20));
}
