//! `cargo xtask demo`: builds the server from a clean clone, serves a repository and shows one answer.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{process, setup};

/// Long enough to build a Python environment over a slow network; a server that gives up logs it at once.
const START_LIMIT: Duration = Duration::from_secs(600);

/// The served repositories, and the script that asks the server.
struct Demo {
    repositories: &'static [&'static str],
    script: &'static str,
    /// Path of a request to try by hand.
    path: &'static str,
}

const MODELS: Demo = Demo {
    repositories: &["examples/models"],
    script: "examples/ask.py",
    path: "v2/models/simple/config",
};
const SENTENCES: Demo = Demo {
    repositories: &["examples/pipelines", "examples/models"],
    script: "examples/embed.py",
    path: "v2/models/sentence_embedding/config",
};

pub fn run(args: &[String]) -> Result<()> {
    let (mut demo, mut keep) = (MODELS, false);
    for arg in args {
        match arg.as_str() {
            "--keep" => keep = true,
            "sentences" => demo = SENTENCES,
            other => bail!("no demo '{other}'; there is `cargo xtask demo [sentences] [--keep]`"),
        }
    }
    demo.run(keep)
}

impl Demo {
    fn run(&self, keep: bool) -> Result<()> {
        let galatea = build()?;
        setup::clients()?;
        setup::models()?;
        install_runtime(&galatea)?;
        let mut server = Served::start(&galatea, self.repositories)?;
        println!(
            "serving {}: HTTP {}, gRPC {}, metrics {}/metrics\n",
            self.repositories.join(" and "),
            server.http,
            server.grpc,
            server.metrics
        );
        let addresses = ["--http", &server.http, "--grpc", &server.grpc];
        let script = process::root().join(self.script);
        process::run(Command::new(setup::python()).arg(script).args(addresses))?;
        if keep {
            let (http, path) = (&server.http, self.path);
            println!("\n{NEXT}");
            println!("Still serving; try: curl {http}/{path}   (Ctrl-C ends it)");
            server.process.wait()?;
        } else {
            drop(server);
            println!("\n{NEXT}");
        }
        Ok(())
    }
}

/// The last text of a demo: next steps.
const NEXT: &str = "\
What to do next:

  cargo xtask demo --keep              the same, and it goes on serving: http://localhost:PORT/ is its console
  target/debug/galatea up              a first look as one has it who installed the program
  target/debug/galatea up my.onnx      serve a model of yours
  docs/first-start.md                  from a model file to an answer
";

/// This feature compiles the dependencies as the tests need them, once for the program and all tests.
pub const SHARED_GRAPH: [&str; 2] = ["--features", "galatea/tested"];

/// Builds the server for the tests, and returns the path of the program.
pub fn build() -> Result<PathBuf> {
    process::run(process::cargo().args(["build", "--package", "galatea"]).args(SHARED_GRAPH))?;
    Ok(process::target_dir().join("debug/galatea"))
}

/// Builds the server for a release, which takes minutes more, and returns the path of the program.
pub fn build_release() -> Result<PathBuf> {
    process::run(process::cargo().args(["build", "--release", "--package", "galatea"]))?;
    Ok(process::target_dir().join("release/galatea"))
}

/// Installs ONNX Runtime with the server's own command, which is quick if it is present.
pub fn install_runtime(galatea: &Path) -> Result<()> {
    process::run(Command::new(galatea).args(["runtime", "install", "onnxruntime"]))
}

/// A running server. Dropping it sends it the signal to end and waits for its end.
struct Served {
    process: Child,
    http: String,
    grpc: String,
    metrics: String,
}

impl Served {
    /// Starts on free ports and waits for the three lines with the addresses.
    fn start(galatea: &Path, repositories: &[&str]) -> Result<Self> {
        let (log, end) = std::io::pipe()?;
        let repositories = repositories.iter().map(|folder| process::root().join(folder));
        let interpreter = setup::python();
        let process = Command::new(galatea)
            .arg("serve")
            .args(repositories.map(|folder| format!("--model-repository={}", folder.display())))
            .arg(format!("--backend-config=python,python-interpreter={}", interpreter.display()))
            .args(["--http-port=0", "--grpc-port=0", "--metrics-port=0"])
            .args(["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"])
            .stdout(end.try_clone()?)
            .stderr(end)
            .spawn()
            .with_context(|| format!("cannot start {}", galatea.display()))?;
        let addresses = Self::follow(log);
        let mut server =
            Self { process, http: String::new(), grpc: String::new(), metrics: String::new() };
        while server.http.is_empty() || server.grpc.is_empty() || server.metrics.is_empty() {
            let Ok((service, address)) = addresses.recv_timeout(START_LIMIT) else {
                bail!("the server did not start; its log has the reason");
            };
            match service.as_str() {
                "HTTPService" => server.http = address,
                "GRPCInferenceService" => server.grpc = address,
                _ => server.metrics = address,
            }
        }
        Ok(server)
    }

    /// Prints progress and errors of the server's log, and sends (service, address) for every `Started X at Y` in it.
    fn follow(log: impl std::io::Read + Send + 'static) -> mpsc::Receiver<(String, String)> {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                if is_shown(&line) {
                    eprintln!("{line}");
                }
                if let Some(started) = started(&line) {
                    let _ = sender.send(started);
                }
            }
        });
        receiver
    }
}

const SHOWN: [&str; 6] = [
    "successfully loaded",
    "opened",
    "Started",
    "Python environment",
    "pip: Collecting",
    "pip: Installing",
];

/// Returns true if a line is printed. The signal at the end is not: the next steps follow it.
fn is_shown(line: &str) -> bool {
    !line.starts_with(['I', '|', '+']) && !line.is_empty() && !line.starts_with("Signal (")
        || SHOWN.iter().any(|word| line.contains(word))
}

fn started(line: &str) -> Option<(String, String)> {
    let (service, address) = line.split_once("Started ")?.1.split_once(" at ")?;
    Some((service.to_owned(), address.trim_end_matches('"').to_owned()))
}

impl Drop for Served {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_log() {
        let line =
            "I1121 11:45:39.147141 9939 http.rs:1] \"Started HTTPService at 127.0.0.1:9000\"";
        assert_eq!(started(line), Some(("HTTPService".into(), "127.0.0.1:9000".into())));
        let metrics = "\"Started Metrics Service at 127.0.0.1:9002\"";
        assert_eq!(started(metrics).unwrap().1, "127.0.0.1:9002");
        assert_eq!(started("\"loading: simple:1\""), None);
    }

    #[test]
    fn problems_are_shown_but_the_signal_at_the_end_is_not() {
        assert!(is_shown("W1121 11:45:39.147141 9939 model.rs:1] \"slow\""));
        assert!(is_shown("error: creating server"));
        assert!(is_shown("I1121 11:45:39.1 9939 model.rs:1] \"successfully loaded 'simple'\""));
        assert!(!is_shown("I1121 11:45:39.1 9939 model.rs:1] \"loading: simple:1\""));
        assert!(!is_shown("Signal (15) received."));
    }
}
