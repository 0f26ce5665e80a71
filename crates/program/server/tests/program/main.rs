//! The built program, from outside: what it prints, how it exits, what it answers.

// The lint's exception for tests does not reach what several tests share.
#![allow(clippy::expect_used)]

mod memory;
mod orchestration;
mod removing;
mod server;

use std::{fs, net::TcpListener, os::unix::fs::symlink, process::Command, thread};

use server::{
    IDENTITY, Repository, Server, body_of, infer_body, launch, post, program, run, start,
    start_with,
};

#[track_caller]
fn fails(arguments: &[&str], expected: &str) {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert_eq!(first, format!("error: {expected}"), "{text}");
}

#[test]
fn help_and_version_are_printed() {
    let output = run(&["serve", "--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(text.starts_with("Usage: galatea serve [PATH...] [options]\n"), "{text}");
    assert!(text.contains("\n  --model-repository <string>\n"), "{text}");
    let output = run(&["--version"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        concat!("galatea ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    assert_eq!(run(&[]).status.code(), Some(1));
    let help = "`galatea --help` lists the commands";
    fails(&["fetch"], &format!("unknown command 'fetch'; {help}"));
    fails(&["bench"], &format!("unknown command 'bench'; did you mean `galatea perf`? {help}"));
    fails(
        &["runtime", "install", "x"],
        "no runtime is called 'x'; there is onnxruntime, pytorch, tensorflow, openvino",
    );
}

#[test]
fn every_command_has_a_help_text() {
    for (command, start) in [
        (&["-h"][..], "Usage: galatea <command>\n"),
        (&["serve", "-h"], "Usage: galatea serve [PATH...] [options]\n"),
        (&["perf", "-h"], "Usage: galatea perf -m <model> [options]\n"),
        (&["runtime", "-h"], "Usage: galatea runtime <command>\n"),
        (&["runtime", "install", "--help"], "Usage: galatea runtime install <name> [options]\n"),
        (&["runtime", "list", "-h"], "Usage: galatea runtime list [options]\n"),
        (&["runtime", "remove", "-h"], "Usage: galatea runtime <command>\n"),
        (&["deploy", "-h"], "Usage: galatea deploy envoy --hosts <host>,<host>... [options]\n"),
        (
            &["deploy", "envoy", "-h"],
            "Usage: galatea deploy envoy --hosts <host>,<host>... [options]\n",
        ),
        (&["cache", "-h"], "Usage: galatea cache clean\n"),
        (&["cache", "clean", "--help"], "Usage: galatea cache clean\n"),
        (&["completions", "-h"], "Usage: galatea completions <shell>\n"),
        (&["manual", "--help"], "Usage: galatea manual [man|markdown|metrics|config]\n"),
    ] {
        let output = run(command);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        assert!(text.starts_with(start), "{command:?}: {text}");
    }
}

#[test]
fn the_flags_page_equals_the_flag_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/flags.md");
    let page = fs::read_to_string(page).expect("docs/flags.md");
    let made = run(&["manual", "markdown"]).stdout;
    let hint = "make it again: cargo run -p galatea -- manual markdown > docs/flags.md";
    assert!(page == String::from_utf8_lossy(&made), "{hint}");
}

#[test]
fn the_metrics_page_equals_the_metric_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/metrics.md");
    let page = fs::read_to_string(page).expect("docs/metrics.md");
    let made = run(&["manual", "metrics"]).stdout;
    let hint = "make it again: cargo run -p galatea -- manual metrics > docs/metrics.md";
    assert!(page == String::from_utf8_lossy(&made), "{hint}");
}

#[test]
fn the_configuration_page_equals_the_schema() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/config.md");
    let page = fs::read_to_string(page).expect("docs/config.md");
    let made = run(&["manual", "config"]).stdout;
    let hint = "make it again: cargo run -p galatea -- manual config > docs/config.md";
    assert!(page == String::from_utf8_lossy(&made), "{hint}");
}

#[test]
fn unknown_texts_are_named() {
    fails(
        &["completions", "fishy"],
        "no shell is called 'fishy'; there is bash, zsh, fish; did you mean 'fish'?",
    );
    fails(&["completions"], "a shell is missing: one of bash, zsh, fish is expected");
    fails(&["completions", "bash", "zsh"], "Unexpected argument: zsh");
    fails(
        &["manual", "pdf"],
        "no form of the manual is called 'pdf'; there is man, markdown, metrics, config",
    );
}

#[test]
fn mistyped_commands_get_a_suggestion() {
    fails(
        &["sevre"],
        "unknown command 'sevre'; did you mean 'serve'? `galatea --help` lists the commands",
    );
    fails(&["runtime", "lst"], "unknown command 'lst'; did you mean 'list'?");
    fails(
        &["runtime", "install", "onnxruntime", "--whel=x"],
        "unrecognized option '--whel'; did you mean '--wheel'?",
    );
    let output = run(&["perf", "-m", "x", "--concurency-range=2"]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("did you mean '--concurrency-range'?"), "{text}");
}

#[test]
fn a_missing_wheel_is_an_error_even_if_the_runtime_is_installed() {
    let home = tempfile::tempdir().expect("dir");
    let runtime = &galatea_runtimes::Runtime::ONNXRUNTIME;
    let installed = home.path().join("runtimes").join(runtime.name).join(runtime.version);
    fs::create_dir_all(&installed).expect("folder");
    fs::write(installed.join(runtime.library()), "").expect("library");
    let install = |more: &[&str]| {
        let mut command = Command::new(program());
        command.args(["runtime", "install", runtime.name]).args(more);
        command.env("GALATEA_HOME", home.path()).output().expect("runs")
    };
    assert!(install(&[]).status.success(), "it is installed");
    let output = install(&["--wheel", "nosuch.whl"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("error: cannot read 'nosuch.whl': "), "{text}");
}

#[test]
fn the_name_perf_analyzer_starts_the_load_tool() {
    let dir = tempfile::tempdir().expect("dir");
    let link = dir.path().join("perf_analyzer");
    symlink(env!("CARGO_BIN_EXE_galatea"), &link).expect("link");
    let output = Command::new(link).arg("--help").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("Usage: perf_analyzer"), "{text}");
    let output = run(&["perf"]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("galatea perf --help"), "{text}");
}

#[test]
fn the_name_tritonserver_starts_the_server() {
    let dir = tempfile::tempdir().expect("dir");
    let link = dir.path().join("tritonserver");
    symlink(env!("CARGO_BIN_EXE_galatea"), &link).expect("link");
    let output = Command::new(link).arg("--help").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("Usage: tritonserver [options]\n"), "{text}");
}

#[test]
fn bad_command_lines_are_refused() {
    fails(
        &["serve"],
        "creating server: Invalid argument - --model-repository must be specified. Name what to serve: a repository, a \
         model's folder, or a model file, as in `galatea serve iris.onnx`",
    );
    fails(
        &["serve", "--modle-repository=x"],
        "unrecognized option '--modle-repository'; did you mean '--model-repository'?",
    );
    fails(
        &["serve", "--model-repository=x", "--strict-readiness=maybe"],
        "Bad option: \"--strict-readiness\". invalid value for bool option: maybe (use true or false)",
    );
    fails(
        &["serve", "--model-repository=/nonexistent/models"],
        "creating server: Internal - failed to stat file /nonexistent/models: No such file or directory (os error 2); \
         --model-repository names a folder that has a folder for each model",
    );
    fails(
        &["serve", "--model-repository=ftp://host/models"],
        "creating server: Unsupported - 'ftp://host/models' is not the address of a repository: use a folder, \
         s3://BUCKET/PATH, gs://BUCKET/PATH, as://ACCOUNT/CONTAINER/PATH, hf://ORGANISATION/MODEL or \
         https://HOST/FILE.tar.gz#sha256=DIGEST",
    );
    let repository = Repository::new();
    fails(
        &["serve", &repository.flag(), "--log-file=/nonexistent/log"],
        "failed to open log file '/nonexistent/log': No such file or directory (os error 2)",
    );
}

#[test]
fn a_port_in_use_is_reported_before_models_are_loaded() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("port");
    let port = taken.local_addr().expect("address").port();
    let repository = Repository::new().with("slow_to_load", IDENTITY);
    let port_flag = format!("--http-port={port}");
    let name = std::fs::read_to_string("/proc/self/comm").expect("this process has a name");
    let arguments =
        ["serve", &repository.flag(), "--http-address=127.0.0.1", "--grpc-port=0", &port_flag];
    fails(
        &arguments,
        &format!(
            "failed to start HTTP service: Unavailable - Socket '127.0.0.1:{port}' already in use by process {} ({}): stop it, or \
             take another port with --http-port=PORT",
            std::process::id(),
            name.trim(),
        ),
    );
    let output = run(&arguments);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("loading:"));
}

#[test]
fn the_server_serves_and_ends_cleanly() {
    let repository = Repository::new().with("simple", IDENTITY);
    let server = start(&repository, &[]);
    let started = server.output();
    for expected in [
        "| Repository Agent | Path |",
        "| identity | built-in | {\"cmdline\":{}} |",
        "| simple | 1       | READY  |",
        "\"successfully loaded 'simple'\"",
    ] {
        assert!(started.contains(expected), "{expected:?} is missing in\n{started}");
    }
    let row = started.lines().find(|line| line.starts_with("| model_control_mode "));
    assert!(row.is_some_and(|row| row.contains("| MODE_NONE ")), "{started}");

    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 200"));
    let answer = post(server.http, "/v2/models/simple/infer", infer_body());
    assert!(body_of(&answer).contains("\"data\":[1.0,2.0,3.0,4.0]"), "{answer}");
    let metrics = server.metrics();
    assert!(
        metrics.contains("nv_inference_request_success{model=\"simple\",version=\"1\"} 1\n"),
        "{metrics}"
    );

    let end = server.stop("TERM");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.contains("\nSignal (15) received.\n"), "{}", end.stdout);
    assert!(end.stdout.contains("successfully unloaded 'simple' version 1"), "{}", end.stdout);
    assert_eq!(end.stderr, "");
}

#[test]
fn an_interrupt_ends_the_server() {
    let repository = Repository::new();
    let end = start(&repository, &[]).stop("INT");
    assert_eq!(end.code, Some(0));
    assert!(end.stdout.contains("\nSignal (2) received.\n"), "{}", end.stdout);
}

#[test]
fn a_signal_while_models_load_ends_the_start_cleanly() {
    let delay = "parameters { key: \"creation_delay_sec\" value { string_value: \"1\" } }\n";
    let repository = Repository::new().with("slow", &format!("{IDENTITY}{delay}"));
    let server = launch(&repository, &[]);
    server.wait_for("loading: slow");
    let end = server.stop("TERM");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.contains("Stopping before all models are loaded"), "{}", end.stdout);
    assert!(end.stdout.contains("successfully unloaded 'slow' version 1"), "{}", end.stdout);
    assert!(!end.stdout.contains("Started"), "{}", end.stdout);
}

#[test]
fn a_failed_model_ends_the_start_unless_a_flag_forbids_it() {
    let repository = Repository::new().with("good", IDENTITY).with("bad", "backend: \"nope\"\n");
    let arguments =
        ["serve", &repository.flag(), "--http-port=0", "--grpc-port=0", "--metrics-port=0"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = "error: creating server: Internal - failed to load 1 of 2 models (bad): load failed for model 'bad': ";
    assert!(err.contains(text), "{err}");
    assert!(out.contains("UNAVAILABLE: "), "{out}");
    assert!(!out.contains("Started"), "{out}");

    let server = start(&repository, &["--exit-on-error=false"]);
    assert!(server.get("/v2/models/good/ready").starts_with("HTTP/1.1 200"));
    assert!(!server.get("/v2/health/ready").starts_with("HTTP/1.1 200"));
    assert_eq!(server.stop("TERM").code, Some(0));
}

#[test]
fn the_last_line_has_the_first_reason_and_advice() {
    let repository =
        Repository::new().with("typo", "backend: \"identity\"\nimput { name: \"A\" }\n");
    let flags = [&*repository.flag(), "--http-port=0", "--grpc-port=0", "--metrics-port=0"];
    let said = |more: &[&str]| {
        let output = run(&[&["serve"], &flags[..], more].concat());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (text(output.stdout), text(output.stderr))
    };
    let (out, err) = said(&[]);
    let logged = err.lines().find(|line| line.starts_with('E')).expect("a line of the log");
    assert!(logged.contains("config.pbtxt:2:1"), "{err}");
    let row = out.lines().find(|line| line.starts_with("| typo")).expect("a line of the table");
    assert!(row.contains("UNAVAILABLE: ") && row.ends_with(" |"), "{out}");
    let last = err.lines().next_back().expect("a line");
    let begins = "error: creating server: Internal - failed to load all models (typo): ";
    assert!(last.starts_with(begins) && last.contains("config.pbtxt:2:1"), "{last}");
    assert!(last.ends_with("; see the log above"), "{last}");

    let (out, err) = said(&["--log-format=json"]);
    for line in out.lines().chain(err.lines()) {
        let read: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(read["time"].is_string() && read["text"].is_string(), "{line}");
    }
    let failure: serde_json::Value =
        err.lines().next().and_then(|line| serde_json::from_str(line).ok()).expect("JSON");
    assert_eq!(
        (failure["level"].as_str(), failure["model"].as_str()),
        (Some("error"), Some("typo"))
    );

    let (_, err) = said(&["--log-error=false"]);
    let last = err.lines().next_back().expect("a line");
    assert!(last.ends_with("; start with --log-error=true for more"), "{last}");
}

/// Starts two requests to a model that takes `millis` for each, and comes back once the second one waits.
fn with_requests_in_flight(
    millis: u32,
    flags: &[&str],
) -> (Repository, Server, Vec<thread::JoinHandle<String>>) {
    let delay = format!(
        "parameters {{ key: \"execute_delay_ms\" value {{ string_value: \"{millis}\" }} }}\n"
    );
    let repository = Repository::new().with("slow", &format!("{IDENTITY}{delay}"));
    let server = start(&repository, flags);
    let port = server.http;
    let request = || thread::spawn(move || post(port, "/v2/models/slow/infer", infer_body()));
    let requests = vec![request(), request()];
    while !server
        .metrics()
        .contains("galatea_inference_requests_in_flight{model=\"slow\",version=\"1\"} 2\n")
    {}
    (repository, server, requests)
}

#[test]
fn requests_in_progress_are_answered_before_the_exit() {
    let (_repository, server, requests) = with_requests_in_flight(500, &[]);
    let end = server.stop("INT");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for request in requests {
        let answer = request.join().expect("thread");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert!(end.stdout.contains("Waiting for in-flight requests to complete."), "{}", end.stdout);
}

#[test]
fn the_exit_timeout_cuts_off_slow_requests() {
    let (_repository, server, _requests) =
        with_requests_in_flight(60_000, &["--exit-timeout-secs=1"]);
    let end = server.stop("TERM");
    assert_eq!(end.code, Some(1));
    assert!(
        end.stderr.contains("\"Exit timeout expired. Exiting immediately.\""),
        "{}",
        end.stderr
    );
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let (_repository, server, _requests) =
        with_requests_in_flight(600_000, &["--exit-timeout-secs=600"]);
    server.signal("TERM");
    // The first line after the signal shows that it is being handled; then a second signal is sent.
    server.wait_for("Waiting for in-flight requests");
    let end = server.stop("TERM");
    assert_eq!(end.code, Some(128 + 15));
    assert!(end.stderr.contains("because of another signal"), "{}", end.stderr);
}

#[test]
fn a_panic_is_logged_and_the_server_continues() {
    let panics = "parameters { key: \"fail\" value { string_value: \"panic\" } }\n";
    let failing = IDENTITY.replace("identity", "failing");
    let repository =
        Repository::new().with("broken", &format!("{failing}{panics}")).with("good", IDENTITY);
    let server = start(&repository, &[]);
    let answer = post(server.http, "/v2/models/broken/infer", infer_body());
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    let answer = post(server.http, "/v2/models/good/infer", infer_body());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let end = server.stop("TERM");
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let line = end.stderr.lines().find(|line| line.contains("panic in thread"));
    assert!(line.is_some_and(|line| line.starts_with('E')), "{}", end.stderr);
}

#[test]
fn log_flags_set_file_and_format() {
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("log");
    let repository = Repository::new();
    let flag = format!("--log-file={}", file.display());
    let flags = [flag.as_str(), "--log-format=ISO8601", "--trace-rate=1000", "--allow-metrics=0"];
    let server = start_with(&repository, &flags, Some(&file));
    let end = server.stop("TERM");
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
    assert_eq!(end.stdout, "Signal (15) received.\n");
    let text = fs::read_to_string(&file).expect("log");
    let first = text.lines().next().expect("a line");
    assert!(
        first.contains("Z W ") && first.contains("'--trace-rate' has been deprecated"),
        "{first}"
    );
    assert!(!text.contains("Started Metrics Service"), "{text}");
}

#[test]
fn with_info_and_warnings_off_only_errors_are_logged() {
    let repository = Repository::new().with("bad", "backend: \"nope\"\n");
    let output = Command::new(program())
        .args(["serve", &repository.flag(), "--http-port=0", "--grpc-port=0", "--metrics-port=0"])
        .args(["--log-info=false", "--log-warning=0"])
        .output()
        .expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.lines().all(|line| line.starts_with('E') || line.starts_with("error: ")),
        "{text}"
    );
}
