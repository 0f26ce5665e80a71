//! Starts the program on a repository of its own and talks to it.

use std::{
    cell::RefCell,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use galatea_test_support::eventually_some;
use tempfile::TempDir;

pub const IDENTITY: &str = "\
backend: \"identity\"
max_batch_size: 0
input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 4 }
output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 4 }
instance_group { kind: KIND_CPU count: 1 }
";

pub fn infer_body() -> &'static str {
    r#"{"inputs":[{"name":"INPUT0","shape":[4],"datatype":"FP32","data":[1,2,3,4]}]}"#
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_galatea")
}

pub fn run(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().expect("the program runs")
}

/// A model repository that is removed with its test.
pub struct Repository(TempDir);

impl Repository {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("dir"))
    }

    pub fn with(self, model: &str, config: &str) -> Self {
        let dir = self.0.path().join(model);
        fs::create_dir_all(dir.join("1")).expect("model folder");
        fs::write(dir.join("config.pbtxt"), config).expect("config");
        self
    }

    pub fn flag(&self) -> String {
        format!("--model-repository={}", self.0.path().display())
    }
}

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    stdout: RefCell<BufReader<ChildStdout>>,
    output: RefCell<String>,
    stderr: TempDir,
    pub http: u16,
    metrics: u16,
}

/// How a server ended and everything it said.
pub struct End {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub fn start(repository: &Repository, flags: &[&str]) -> Server {
    start_with(repository, flags, None)
}

/// Returns when the server is ready. With a log file there is nothing on stdout to wait for, so the file is
/// read until it contains the line.
pub fn start_with(repository: &Repository, flags: &[&str], log: Option<&Path>) -> Server {
    let mut server = launch(repository, flags);
    server.http = match log {
        Some(file) => port_in(&wait_for_file(file, "Started HTTPService at ")),
        None => port_in(&server.wait_for("Started HTTPService at ")),
    };
    if log.is_none() && !flags.contains(&"--allow-metrics=0") {
        server.metrics = port_in(&server.wait_for("Started Metrics Service at "));
    }
    server
}

/// Comes back at once: nothing is loaded yet, and the ports are not known.
pub fn launch(repository: &Repository, flags: &[&str]) -> Server {
    let stderr = tempfile::tempdir().expect("dir");
    let mut child = Command::new(program())
        .args(["serve", &repository.flag(), "--http-port=0", "--grpc-port=0", "--metrics-port=0"])
        .args(["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(fs::File::create(stderr.path().join("stderr")).expect("file"))
        .spawn()
        .expect("the program runs");
    let stdout = BufReader::new(child.stdout.take().expect("stdout"));
    Server {
        child,
        stdout: RefCell::new(stdout),
        output: RefCell::default(),
        stderr,
        http: 0,
        metrics: 0,
    }
}

fn wait_for_file(path: &Path, text: &str) -> String {
    eventually_some(&format!("{} has a line with {text:?}", path.display()), || {
        let content = fs::read_to_string(path).unwrap_or_default();
        let mut lines = content.split_inclusive('\n');
        lines.find(|line| line.contains(text) && line.ends_with('\n')).map(str::to_owned)
    })
}

/// The number behind the last colon.
pub fn port_in(line: &str) -> u16 {
    let digits = line.trim_end().trim_end_matches('"').rsplit(':').next().unwrap_or_default();
    digits.parse().unwrap_or_else(|e| panic!("no port in {line:?}: {e}"))
}

impl Server {
    /// Reads on until a line holds `text`.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let n = self.stdout.borrow_mut().read_line(&mut line).expect("stdout");
            assert!(n > 0, "ended without {text:?}:\n{}{}", self.output.borrow(), self.stderr());
            self.output.borrow_mut().push_str(&line);
            if line.contains(text) {
                return line;
            }
        }
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// What was read of stdout so far.
    pub fn output(&self) -> String {
        self.output.borrow().clone()
    }

    pub fn get(&self, path: &str) -> String {
        exchange(self.http, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    }

    pub fn metrics(&self) -> String {
        let answer =
            exchange(self.metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        body_of(&answer).to_owned()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Sends a signal and waits for the end.
    pub fn stop(mut self, name: &str) -> End {
        self.signal(name);
        let mut stdout = self.output.take();
        self.stdout.get_mut().read_to_string(&mut stdout).expect("stdout");
        let code = self.child.wait().expect("ends").code();
        End { code, stdout, stderr: self.stderr() }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.stderr.path().join("stderr")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn post(port: u16, path: &str, body: &str) -> String {
    exchange(port, &post_request(path, body))
}

/// Sends a request and comes back without the answer.
pub fn send(port: u16, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
    stream.write_all(post_request(path, body).as_bytes()).expect("sent");
    stream
}

fn post_request(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// The whole answer; empty when the server hangs up.
fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
