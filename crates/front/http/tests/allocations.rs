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
use galatea_http::{HttpOptions, serve};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CONFIG: &str = "backend: \"add_sub\" max_batch_size: 8
    input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 16 }
    input { name: \"INPUT1\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 16 }
    output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: 16 }";

/// More than it takes until the request is known and executed without another thread.
const WARM_UP: usize = 200;
const REQUESTS: usize = 500;
/// Blocks of one request. The goal is 5; what each of them takes is 0.3 % of the instructions of a request.
/// The decoded call is one: boxed, it is not copied on its way through futures and results, which costs less.
const MOST: f64 = 18.5;

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

fn request() -> Vec<u8> {
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
        "POST /v2/models/simple/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n",
        json.len(),
        json.len() + 128
    );
    [head.as_bytes(), json.as_bytes(), &[1; 128]].concat()
}

/// Sends it and reads the answer, which comes in one piece, without an allocation. Returns the answer's length.
fn ask(stream: &mut TcpStream, request: &[u8], answer: &mut [u8]) -> usize {
    stream.write_all(request).unwrap();
    let length = stream.read(answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    length
}

#[test]
fn a_repeated_small_request_allocates_little() {
    let repository = tempfile::tempdir().unwrap();
    let engine = engine(repository.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = serve(listener, &engine, &HttpOptions::default()).unwrap();
    let mut stream = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (request, mut answer) = (request(), vec![0; 4096]);
    for _ in 0..WARM_UP {
        ask(&mut stream, &request, &mut answer);
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..REQUESTS {
        let length = ask(&mut stream, &request, &mut answer);
        assert!(answer[..length].ends_with(&[0; 64]), "1 - 1");
    }
    let change = region.change();
    let blocks = (change.allocations + change.reallocations) as f64 / REQUESTS as f64;
    println!("{blocks:.1} blocks are allocated for a request over HTTP");
    assert!(blocks < MOST, "{blocks:.1} blocks are allocated for a request");
    server.shut_down(Duration::from_secs(20));
}
