//! Command lines of `serve`, and what becomes of them.

mod exposure;

use std::time::Duration;

use galatea_http::{CloudFrontEnd, CloudInference};
use galatea_serve::{CloudOptions, Place};
use galatea_telemetry::{logger::LogFormat, metrics::MetricsOptions};

use super::*;
use crate::flags::{Words, parse};

fn options_in(arguments: &[&str], variables: &[(&str, &str)]) -> Result<ServeOptions, FlagError> {
    let flags =
        parse(arguments.iter().map(|&a| a.to_owned()), Words::Refused)?.expect("no help asked for");
    from_flags(flags, &Environment::of(variables.iter().copied()))
}

fn options(arguments: &[&str]) -> ServeOptions {
    let with_repository: Vec<&str> =
        ["--model-repository=/models"].into_iter().chain(arguments.iter().copied()).collect();
    options_in(&with_repository, &[]).expect("good flags")
}

#[track_caller]
fn refused(arguments: &[&str], expected: &str) {
    let with_repository: Vec<&str> =
        ["--model-repository=/models"].into_iter().chain(arguments.iter().copied()).collect();
    let error = options_in(&with_repository, &[]).expect_err("bad flags");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_console_is_on_unless_switched_off() {
    assert!(options(&[]).http_options.has_console);
    assert!(options(&["--console=true"]).http_options.has_console);
    assert!(!options(&["--console=false"]).http_options.has_console);
}

#[test]
fn gpu_flags_are_parsed() {
    assert!(options(&[]).has_gpu_metrics);
    assert!(!options(&["--allow-gpu-metrics=false"]).has_gpu_metrics);
    assert!(!options(&["--allow-metrics=false"]).has_gpu_metrics);
    let cpu_only = [("TRITON_SERVER_CPU_ONLY", "")];
    let o = options_in(&["--model-repository=/models"], &cpu_only).expect("good flags");
    assert!(!o.has_gpu_metrics, "the variable counts, not what it holds");
    assert_eq!(o.engine.gpus.min_compute_capability, 6.0);
    assert!(o.engine.gpus.available.is_empty(), "the driver is queried later");
    let o = options(&["--min-supported-compute-capability=7.5"]);
    assert_eq!(o.engine.gpus.min_compute_capability, 7.5);
}

#[test]
fn options_have_defaults() {
    let o = options(&[]);
    assert_eq!(o.engine.server_id, "triton");
    assert_eq!(o.repositories, [PathBuf::from("/models")]);
    assert_eq!(o.engine.control_mode, ControlMode::None);
    assert!(o.engine.auto_completes_config && o.engine.has_strict_readiness && o.exits_on_error);
    assert_eq!(o.engine.exit_timeout, Duration::from_secs(30));
    assert_eq!(o.engine.metrics, MetricsOptions::default());
    assert_eq!(o.log, LogSettings::default());
    let ports: Vec<_> = [&o.http, &o.grpc, &o.metrics]
        .into_iter()
        .flatten()
        .map(|e| (e.service, e.place.to_string()))
        .collect();
    let expected = [("HTTP", 8000), ("GRPC", 8001), ("metrics", 8002)];
    assert_eq!(ports, expected.map(|(service, port)| (service, format!("0.0.0.0:{port}"))));
    assert_eq!(o.http_options.max_input_size, 64 << 20);
    assert!(o.runtimes.may_download);
    assert_eq!(o.notes, []);
}

#[test]
fn every_value_reaches_its_option() {
    let o = options(&[
        "--model-store=/more",
        "--id",
        "mine",
        "--model-control-mode=EXPLICIT",
        "--load-model=a",
        "--load-model",
        "b",
        "--strict-model-config=True",
        "--backend-config=onnxruntime,threads=2",
        "--backend-config=default-max-batch-size=8",
        "--metrics-config=counter_latencies=false",
        "--metrics-interval-ms=500.5",
        "--http-address=127.0.0.1",
        "--allow-grpc=0",
        "--log-verbose=2",
        "--log-format=iso8601",
        "--runtime-downloads=never",
        "--grpc-keepalive-time=5",
    ]);
    assert_eq!(o.repositories, [PathBuf::from("/models"), PathBuf::from("/more")]);
    assert_eq!(o.engine.startup_models, ["a", "b"]);
    assert!(!o.engine.auto_completes_config && o.grpc.is_none() && !o.runtimes.may_download);
    assert_eq!(o.engine.backend_config.of("onnxruntime")["threads"], "2");
    assert_eq!(o.engine.backend_config.of("")["default-max-batch-size"], "8");
    assert!(!o.engine.metrics.has_counter_latencies);
    assert_eq!(o.engine.metrics.interval, Duration::from_micros(500_500));
    assert_eq!(o.metrics.map(|e| e.place.to_string()), Some("127.0.0.1:8002".to_owned()));
    assert_eq!((o.log.verbose_level, o.log.format), (2, LogFormat::Iso8601));
    assert_eq!(o.grpc_options.keepalive_time, Duration::from_millis(5));
}

#[test]
fn repositories_are_polled_only_in_poll_mode_at_a_positive_interval() {
    let poll = "--model-control-mode=poll";
    assert_eq!(options(&[poll]).poll_interval, Some(Duration::from_secs(15)));
    for never in [
        &["--repository-poll-secs=5"][..],
        &[poll, "--repository-poll-secs=0"],
        &[poll, "--repository-poll-secs=-5"],
    ] {
        assert_eq!(options(never).poll_interval, None, "{never:?}");
    }
}

#[test]
fn reload_jitter_delays_polled_loads_with_a_seed_of_this_start() {
    let poll = "--model-control-mode=poll";
    assert_eq!(options(&[poll]).engine.reload_jitter.longest, Duration::ZERO);
    let [first, second] = [(); 2].map(|()| options(&[poll, "--reload-jitter=30"]));
    assert_eq!(first.engine.reload_jitter.longest, Duration::from_secs(30));
    assert_ne!(first.engine.reload_jitter.seed, second.engine.reload_jitter.seed);
    assert_eq!(first.notes, []);
    let text =
        "--reload-jitter=30 has no effect: the server does not poll (--model-control-mode=poll)";
    assert_eq!(options(&["--reload-jitter=30"]).notes, [Note::Warning(text.to_owned())]);
}

#[test]
fn services_beside_sagemaker_use_its_port_range() {
    let range = "--sagemaker-safe-port-range=8001-8090";
    refused(
        &["--allow-sagemaker=true", range],
        "The server cannot listen to HTTP requests at port 8000, allowed port range is [8001, 8090]",
    );
    options(&["--allow-sagemaker=true", range, "--http-port=8005"]);
    options(&[range]);
}

#[test]
fn log_escaping_is_set_by_an_environment_variable() {
    let variables = [("TRITON_SERVER_ESCAPE_LOG_MESSAGES", "0")];
    let o = options_in(&["--model-repository=m"], &variables).expect("good");
    assert!(!o.log.has_escaping);
}

#[test]
fn conflicting_and_empty_flags_are_refused() {
    refused(
        &["--load-model=x"],
        "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
    );
    refused(
        &["--model-control-mode=explicit", "--load-model=*", "--load-model=x"],
        "Wildcard model name '*' must be the ONLY startup model if specified at all.",
    );
    refused(
        &["--repoagent-directory="],
        "creating server: Invalid argument - --repoagent-directory can not be empty",
    );
    let error = options_in(&[], &[]).expect_err("no repository");
    assert_eq!(
        error.to_string(),
        "creating server: Invalid argument - --model-repository must be specified"
    );
}

#[test]
fn malformed_setting_flags_are_refused() {
    refused(
        &["--backend-config=foo"],
        "Bad option: \"--backend-config\". --backend-config option format is '<backend name>,<setting>=<value>'. \
         Got foo",
    );
    refused(
        &["--backend-config=,a=b"],
        "Bad option: \"--backend-config\". No backend specified. --backend-config option format is \
         <backend name>,<setting>=<value> or <setting>=<value>. Got ,a=b",
    );
    refused(
        &["--metrics-config=foo"],
        "Bad option: \"--metrics-config\". --metrics-config option format is <setting>=<value>. Got foo",
    );
    refused(
        &["--cache-config=local,size=1", "--response-cache-byte-size=1"],
        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or \
         the other.",
    );
    let o = options(&["--metrics-config=histograms=1"]);
    let warning = |text: &str| Note::Warning(text.to_owned());
    assert_eq!(
        o.notes,
        [warning(
            "--metrics-config=histograms=1 has no effect: the settings are counter_latencies, \
                 histogram_latencies, summary_latencies, summary_quantiles"
        ),]
    );
    options(&[
        "--trace-config=level=OFF",
        "--trace-config=triton,file=x",
        "--trace-config",
        "rate=5",
    ]);
}

#[test]
fn a_port_out_of_range_is_refused_when_it_is_used() {
    for (service, port) in [("http", "-47"), ("grpc", "70000"), ("metrics", "-1")] {
        let flag = format!("--{service}-port={port}");
        let text = format!(
            "Bad option: \"--{service}-port\". Provided option value is out of bound. Got {port}, expected 0 to 65535"
        );
        refused(&[&flag], &text);
        options(&[&flag, &format!("--allow-{service}=0")]);
    }
}

#[test]
fn port_collisions_are_refused() {
    refused(
        &["--http-port=8001"],
        "The server cannot listen to HTTP requests and GRPC requests at the same address and port 0.0.0.0:8001; \
         give one of them another port",
    );
    refused(
        &["--http-address=127.0.0.1", "--metrics-address=127.0.0.1", "--metrics-port=8000"],
        "The server cannot listen to HTTP requests and metrics requests at the same address and port \
         127.0.0.1:8000; give one of them another port",
    );
    options(&["--http-port=0", "--grpc-port=0", "--metrics-port=0"]);
    options(&["--http-address=127.0.0.1", "--grpc-address=127.0.0.2", "--grpc-port=8000"]);
    options(&["--allow-http=false", "--grpc-port=8000"]);
}

#[test]
fn services_may_listen_at_unix_sockets() {
    let o = options(&["--http-address=unix:/run/http", "--grpc-address=unix:grpc"]);
    let places = [&o.http, &o.grpc, &o.metrics].map(|e| e.as_ref().expect("on").place.to_string());
    assert_eq!(places, ["unix:/run/http", "unix:grpc", "127.0.0.1:8002"]);
    assert_eq!(o.notes, []);
    assert_eq!(o.http.expect("on").place, Place::Socket(PathBuf::from("/run/http")));
    let o = options(&["--metrics-address=unix:///run/m", "--http-address=::", "--metrics-port=1"]);
    assert_eq!(o.metrics.expect("on").place.to_string(), "unix:///run/m");
    let text =
        "--metrics-port=1 has no effect: --metrics-address=unix:///run/m names a Unix socket";
    assert_eq!(o.notes, [Note::Warning(text.to_owned())]);
    options(&[&format!("--http-address=unix:{}", "p".repeat(107))]);
}

#[test]
fn unix_sockets_that_cannot_be_are_refused() {
    let long = "p".repeat(108);
    for (address, reason) in [
        ("unix:", "the path of the Unix socket is missing"),
        ("unix-abstract:x", "abstract names are not supported"),
        (&format!("unix:{long}"), "the path has 108 bytes, and that of a Unix socket at most 107"),
    ] {
        let flag = format!("--grpc-address={address}");
        refused(&[&flag], &format!("Error: {flag}: {reason}."));
    }
    let reused = ["--http-address=unix:x", "--reuse-http-port=true"];
    let text =
        "Error: --http-address=unix:x: a Unix socket has one server; leave out --reuse-http-port.";
    refused(&reused, text);
    let same = ["--http-address=unix:x", "--grpc-address=unix:x"];
    refused(
        &same,
        "The server cannot listen to HTTP requests and GRPC requests at the same Unix socket unix:x; give one of them \
         another path",
    );
    refused(
        &["--http-address=unix:x", "--allow-sagemaker=true"],
        "Error: SageMaker requests come to a port at the address of HTTP, which --http-address=unix:x makes a Unix socket.",
    );
}

#[test]
fn a_non_numeric_hold_count_is_reported() {
    let repository = ["--model-repository=/models"];
    let held =
        [("TRITONSERVER_DELAY_SCHEDULER", "4"), ("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", "2")];
    let o = options_in(&repository, &held).expect("good");
    assert_eq!((o.engine.hold.queued, o.engine.hold.backlogged, o.notes.len()), (4, 2, 0));
    let o = options_in(&repository, &[("TRITONSERVER_DELAY_SCHEDULER", "many")]).expect("good");
    let text = "TRITONSERVER_DELAY_SCHEDULER has no effect: 'many' is not a number of requests";
    assert_eq!(o.engine.hold.queued, 0);
    assert_eq!(o.notes, [Note::Warning(text.to_owned())]);
}

#[test]
fn flags_without_effect_and_deprecated_flags_are_warned_about() {
    let o = options(&[
        "--buffer-manager-thread-count=4",
        "--strict-model-config=false",
        "--trace-rate=1000",
    ]);
    let warning = |text: &str| Note::Warning(format!("Warning: {text}"));
    assert_eq!(
        o.notes,
        [
            Note::Info(
                "--buffer-manager-thread-count=4 has no effect: a tensor is copied at most once, by the thread \
                 that runs its batch"
                    .to_owned()
            ),
            warning(
                "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."
            ),
            warning(
                "'--trace-rate' has been deprecated and will be removed in future releases. Please use \
                 '--trace-config rate=<rate value> instead."
            ),
        ]
    );
}

#[test]
fn the_option_table_shows_effective_values() {
    let rows =
        options(&["--model-store=b", "--strict-model-config=1", "--exit-timeout-secs=5"]).rows;
    let rows: Vec<_> = rows.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        rows,
        [
            ("server_id", "triton"),
            ("exit_timeout", "5"),
            ("model_repository_path[0]", "/models"),
            ("model_repository_path[1]", "b"),
            ("strict_model_config", "1"),
            ("strict_readiness", "1"),
            ("model_control_mode", "MODE_NONE"),
            ("model_config_name", ""),
            ("model_load_thread_count", "4"),
            ("rate_limit", "OFF"),
            ("pinned_memory_pool_byte_size", "268435456"),
            ("min_supported_compute_capability", "6.0"),
            ("runtime_downloads", "AUTO"),
        ]
    );
}

#[test]
fn vertex_ai_defaults_to_one_port_and_its_own_models() {
    let options = |line: &[&str], variables: &[(&str, &str)]| {
        let line = line.iter().map(|&word| word.to_owned());
        let flags = parse(line, Words::Refused).expect("good").expect("no help");
        from_flags(flags, &Environment::of(variables.iter().copied()))
    };
    let routes = [("AIP_PREDICT_ROUTE", "/p"), ("AIP_HEALTH_ROUTE", "/h")];
    let prediction = [("AIP_MODE", "PREDICTION"), ("AIP_STORAGE_URI", "models")];
    let vertex = [&routes[..], &prediction].concat();
    let found = options(&[], &vertex).expect("good");
    assert_eq!((found.http, found.grpc), (None, None));
    assert!(found.metrics.is_some());
    assert_eq!(found.repositories, [PathBuf::from("models")]);
    let line = ["--allow-http=true", "--allow-grpc=true", "--model-repository=x"];
    let found = options(&line, &vertex).expect("good");
    assert!(found.http.is_some() && found.grpc.is_some());
    assert_eq!(found.repositories, [PathBuf::from("x")]);
    let found = options(&["--allow-vertex-ai=false"], &vertex).expect("good");
    assert!(found.http.is_none() && found.clouds.is_empty(), "as the real server");
    let found = options(&[], &[("AIP_MODE", "TRAINING"), prediction[1]]).expect("good");
    assert!(found.http.is_some() && found.clouds.is_empty());
    let broken = [&prediction[..], &[("AIP_PREDICT_ROUTE", "/("), routes[1]]].concat();
    let error = options(&[], &broken).expect_err("no expression").to_string();
    assert!(error.contains("AIP_PREDICT_ROUTE: '/(' is not a regular expression"), "{error}");
}

fn port(cloud: &CloudOptions) -> u16 {
    cloud.endpoint.port().expect("a port").port
}

#[test]
fn cloud_platforms_are_enabled_by_flags_or_environment() {
    let options = |line: &[&str], variables: &[(&str, &str)]| {
        let line = ["--model-repository=x"].iter().chain(line).map(|&word| word.to_owned());
        let flags = parse(line, Words::Refused).expect("good").expect("no help");
        let environment = Environment::of(variables.iter().copied());
        from_flags(flags, &environment).map(|options| options.clouds)
    };
    assert!(options(&[], &[]).expect("good").is_empty());
    let found = options(
        &["--allow-sagemaker=true", "--sagemaker-port=9"],
        &[("SAGEMAKER_TRITON_PING_MODE", "live"), ("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "m")],
    );
    let found = found.expect("good");
    assert_eq!((found[0].endpoint.service, port(&found[0])), ("SageMaker", 9));
    let CloudFrontEnd::SageMaker { pings_liveness, model, inference, .. } = &found[0].platform
    else {
        panic!("another platform: {:?}", found[0].platform);
    };
    assert_eq!((*pings_liveness, &**model, *inference), (true, "m", CloudInference::Infer));
    let routes = [("AIP_PREDICT_ROUTE", "/p"), ("AIP_HEALTH_ROUTE", "/h")];
    let vertex = [&routes[..], &[("AIP_MODE", "PREDICTION"), ("AIP_HTTP_PORT", "7")]].concat();
    let found = options(&[], &vertex).expect("good");
    assert_eq!((found[0].endpoint.service, port(&found[0])), ("Vertex AI", 7));
    assert!(options(&["--allow-vertex-ai=false"], &vertex).expect("good").is_empty());
    assert_eq!(port(&options(&["--allow-vertex-ai=true"], &routes).expect("good")[0]), 8080);
    for (line, variables, text) in [
        (
            "--allow-vertex-ai=true",
            &routes[1..],
            "failed to start Vertex AI service: Invalid argument - API_PREDICT_ROUTE is not defined for Vertex AI endpoint",
        ),
        (
            "--allow-vertex-ai=true",
            &routes[..1],
            "failed to start Vertex AI service: Invalid argument - AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint",
        ),
        (
            "--allow-sagemaker=true",
            &[("SAGEMAKER_TRITON_INFERENCE_TYPE", "x")],
            "SAGEMAKER_TRITON_INFERENCE_TYPE is 'x'. Must be one of: infer, generate, generate_stream.",
        ),
    ] {
        assert_eq!(options(&[line], variables).expect_err(text).to_string(), text);
    }
    let text = options(&["--allow-sagemaker=true", "--http-port=8080"], &[]).expect_err("one port");
    assert!(
        text.to_string().starts_with("The server cannot listen to HTTP requests and SageMaker")
    );
}

#[test]
fn instances_start_in_parallel_unless_the_environment_disables_it() {
    let repository = ["--model-repository=x"];
    let one_by_one = |value| {
        let options = options_in(&repository, &[("TRITON_PARALLEL_INSTANCE_LOADING", value)]);
        options.expect("good").engine.starts_instances_one_by_one
    };
    assert!(one_by_one("0") && one_by_one("true"));
    assert!(!one_by_one("1") && !one_by_one(""));
    assert!(!options_in(&repository, &[]).expect("good").engine.starts_instances_one_by_one);
}

#[test]
fn the_socket_for_upgrades_is_a_path_of_its_own() {
    assert_eq!(options(&[]).takeover, None);
    assert_eq!(options(&["--takeover=/run/g.sock"]).takeover, Some("/run/g.sock".into()));
    refused(&["--takeover="], "Error: --takeover=: the path of the Unix socket is missing.");
    refused(
        &["--takeover=unix:/run/g.sock"],
        "Error: --takeover=unix:/run/g.sock: write the path alone, without 'unix:'.",
    );
    refused(
        &["--takeover=/run/h.sock", "--http-address=unix:/run/h.sock"],
        "Error: --takeover=/run/h.sock: HTTP has this Unix socket; take another path.",
    );
    let long = format!("/{}", "x".repeat(107));
    refused(
        &[&format!("--takeover={long}")],
        &format!(
            "Error: --takeover={long}: the path has 108 bytes, and that of a Unix socket at most 107."
        ),
    );
}
