//! The table of `serve`: names, values, refusals.

use std::{collections::BTreeSet, path::PathBuf};

use galatea_command_line::{Notice, OptionRow, rows};
use galatea_frontend::{ClientLimitSettings, RequestRate};
use galatea_trace::Settings;

use super::*;

/// The command line of tritonserver 2.73: 91 flags and `--help`.
const TRITON: &str = "
    help id exit-timeout-secs log-verbose log-info log-warning log-error log-format log-file
    model-repository model-store exit-on-error disable-auto-complete-config strict-readiness
    model-control-mode repository-poll-secs load-model model-config-name model-load-thread-count
    model-load-retry-count model-namespacing enable-peer-access
    allow-http http-address http-port reuse-http-port http-header-forward-pattern http-thread-count
    http-max-input-size http-restricted-api
    allow-grpc grpc-address grpc-port reuse-grpc-port grpc-header-forward-pattern grpc-infer-thread-count
    grpc-infer-allocation-pool-size grpc-infer-cq-count grpc-max-response-pool-size grpc-use-ssl grpc-use-ssl-mutual
    grpc-server-cert grpc-server-key grpc-root-cert grpc-infer-response-compression-level
    grpc-keepalive-time grpc-keepalive-timeout grpc-keepalive-permit-without-calls
    grpc-http2-max-pings-without-data grpc-http2-min-recv-ping-interval-without-data
    grpc-http2-max-ping-strikes grpc-max-connection-age grpc-max-connection-age-grace
    grpc-restricted-protocol
    allow-sagemaker sagemaker-port sagemaker-safe-port-range sagemaker-thread-count
    allow-vertex-ai vertex-ai-port vertex-ai-thread-count vertex-ai-default-model
    allow-metrics allow-gpu-metrics allow-cpu-metrics metrics-address metrics-port metrics-interval-ms
    metrics-config trace-config backend-directory backend-config repoagent-directory cache-config
    cache-directory rate-limit rate-limit-resource pinned-memory-pool-byte-size
    cuda-memory-pool-byte-size cuda-virtual-address-size min-supported-compute-capability
    buffer-manager-thread-count host-policy model-load-gpu-limit allow-client-shm
    strict-model-config response-cache-byte-size trace-file trace-level trace-rate trace-count
    trace-log-frequency";

const OWN: &str = "
    python-isolation python-environment-variable python-readable-path python-writable-path python-memory python-model-control
    allow-override-paths repository-cache-directory repository-cache-size memory-budget grpc-max-message-size runtime-downloads onnxruntime-lib tensorflow-lib openvino-lib libtorch
    access-log admission auth-policy console hardened drain-delay-secs takeover max-connections connection-head-timeout-secs connection-progress-timeout-secs connection-idle-timeout-secs
    client-max-concurrent-requests client-max-request-bytes client-requests-per-second
    connection-max-concurrent-requests connection-max-request-bytes https-cert https-key https-root-cert metrics-https gpu-groups trace-model-calls
    http-metrics send-load-reports reload-jitter";

fn all() -> impl Iterator<Item = &'static OptionRow<ServeFlags>> {
    rows::<ServeFlags>()
}

fn parsed(arguments: &[&str]) -> Result<ServeFlags, FlagError> {
    let flags = parse(arguments.iter().map(|&a| a.to_owned()), Words::Refused)?;
    Ok(flags.expect("no help asked for"))
}

#[track_caller]
fn refused(arguments: &[&str], expected: &str) {
    match parsed(arguments) {
        Ok(_) => panic!("{arguments:?} was accepted"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn the_table_has_exactly_the_known_flags() {
    let expected: BTreeSet<&str> =
        TRITON.split_whitespace().chain(OWN.split_whitespace()).collect();
    let names: Vec<&str> = all().map(|flag| flag.names.long).collect();
    assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(names.len(), expected.len(), "a name stands in the table twice");
}

#[test]
fn every_flag_accepts_its_default_and_has_a_description() {
    for flag in all() {
        assert!(flag.help.ends_with('.'), "--{}", flag.names.long);
        if !flag.default.is_empty() {
            let typed = format!("--{}={}", flag.names.long, flag.default);
            parsed(&[&typed]).unwrap_or_else(|e| panic!("{typed}: {e}"));
        }
    }
}

#[test]
fn flags_are_accepted_in_every_spelling() {
    for spelling in
        [&["--http-port=9"][..], &["--http-port", "9"], &["--http-po", "9"], &["--http-por=9"]]
    {
        let flags = parsed(spelling).expect("good");
        assert_eq!(flags.http.port, 9, "{spelling:?}");
    }
    let flags =
        parsed(&["--model-store=a", "--model-repository", "b", "--id=", "--log-file", "--id"]);
    let flags = flags.expect("good");
    assert_eq!(flags.serve.repositories, ["a", "b"].map(PathBuf::from));
    assert_eq!(flags.serve.engine.server_id, "");
    assert_eq!(flags.serve.log.file, Some(PathBuf::from("--id")));
    assert_eq!(flags.http.port, 8000);
    assert!(!parsed(&["--disable-auto"]).expect("good").serve.engine.auto_completes_config);
    for line in [&["--help", "extra"][..], &["-h"], &["--id=x", "-h", "--nonsense"]] {
        let words = line.iter().map(|&word| word.to_owned());
        assert!(matches!(parse(words, Words::Refused), Ok(None)), "{line:?}");
    }
    assert_eq!(parsed(&["--id=a", "--id=b"]).expect("good").serve.engine.server_id, "b");
}

#[test]
fn booleans_are_parsed() {
    for (text, expected) in [
        ("true", true),
        ("True", true),
        ("ON", true),
        ("1", true),
        ("false", false),
        ("False", false),
        ("oFF", false),
        ("0", false),
    ] {
        let flags = parsed(&["--allow-http", text]).expect("good");
        assert_eq!(flags.http.is_allowed, Some(expected), "{text}");
    }
}

#[test]
fn mistakes_are_named() {
    refused(&["--nonsense"], "unrecognized option '--nonsense'");
    refused(
        &["--modle-repository=x"],
        "unrecognized option '--modle-repository'; did you mean '--model-repository'?",
    );
    refused(
        &["--model_repository=x"],
        "unrecognized option '--model_repository'; did you mean '--model-repository'?",
    );
    refused(&["-id", "x"], "unrecognized option '-id'; did you mean '--id'?");
    refused(
        &["--log"],
        "option '--log' is ambiguous; possibilities: '--log-verbose' '--log-info' '--log-warning' '--log-error' \
         '--log-format' '--log-file'",
    );
    refused(&["--model-repository"], "option '--model-repository' requires an argument");
    refused(
        &["--disable-auto-complete-config=true"],
        "option '--disable-auto-complete-config' doesn't allow an argument",
    );
    refused(&["--id=x", "extra", "more"], "Unexpected argument: extra (options begin with --)");
    refused(&["--", "--id=x"], "Unexpected argument: --id=x (a word behind -- is not an option)");
    refused(
        &["model-repository=x"],
        "Unexpected argument: model-repository=x (options begin with --: --model-repository=x)",
    );
}

#[test]
fn paths_may_be_given_without_an_option() {
    let with_paths = |words: &[&str]| {
        let flags = parse(words.iter().map(|&word| word.to_owned()), Words::Paths);
        flags.map(|flags| flags.expect("no help").serve.paths)
    };
    let beside = with_paths(&["--model-repository=m", "extra"]).expect_err("as Triton refuses it");
    assert_eq!(
        beside.to_string(),
        "Unexpected argument: extra (options begin with --; to serve it as well: --model-repository=extra)"
    );
    let paths = with_paths(&["a.onnx", "--id=x", "models/"]).expect("taken");
    assert_eq!(paths, ["a.onnx", "models/"].map(std::path::PathBuf::from));
    for word in ["http-port=1", "--", "--x"] {
        let words = if word == "--" { vec!["--", "-x"] } else { vec![word] };
        assert!(with_paths(&words).is_err(), "{word}");
    }
}

#[test]
fn bad_values_are_named() {
    refused(
        &["--strict-readiness=maybe"],
        "Bad option: \"--strict-readiness\". invalid value for bool option: maybe (use true or false)",
    );
    refused(
        &["--model-control-mode=bogus"],
        "Bad option: \"--model-control-mode\". invalid argument for --model-control-mode: got 'bogus', expected \
         one of none, poll, explicit",
    );
    refused(
        &["--model-config-name="],
        "Bad option: \"--model-config-name\". Error: empty argument for --model-config-name",
    );
    for port in ["abc", "", "12x", " 1"] {
        refused(
            &["--http-port", port],
            &format!(
                "Bad option: \"--http-port\". Invalid option value. Got {port}, expected a number"
            ),
        );
    }
    refused(
        &["--http-port=99999999999999999999"],
        "Bad option: \"--http-port\". Provided option value is out of bound. Got 99999999999999999999",
    );
    refused(
        &["--metrics-interval-ms=-1"],
        "Bad option: \"--metrics-interval-ms\". Invalid option value. Got -1, expected a number",
    );
    refused(
        &["--http-max-input-size=0"],
        "Bad option: \"--http-max-input-size\". Provided option value is out of bound. Got 0, expected 1 to \
         2147483647",
    );
}

#[test]
fn client_limits_are_numbers_and_sizes() {
    let flags = parsed(&[
        "--client-max-concurrent-requests=8",
        "--client-max-request-bytes=64M",
        "--client-requests-per-second=0.5:20",
        "--connection-max-request-bytes=1024",
    ]);
    let limits = flags.expect("good").serve.client_limits;
    assert_eq!((limits.client.requests, limits.client.bytes), (8, 64 << 20));
    assert_eq!((limits.connection.requests, limits.connection.bytes), (usize::MAX, 1024));
    assert_eq!(limits.rate, Some(RequestRate { per_second: 0.5, burst: 20.0 }));
    let rate =
        parsed(&["--client-requests-per-second=0.5"]).expect("good").serve.client_limits.rate;
    assert_eq!(rate, Some(RequestRate { per_second: 0.5, burst: 1.0 }));
    assert_eq!(parsed(&[]).expect("good").serve.client_limits, ClientLimitSettings::default());
    for wrong in [
        "--client-max-concurrent-requests=0",
        "--client-max-request-bytes=50%",
        "--client-requests-per-second=0",
        "--client-requests-per-second=inf",
        "--client-requests-per-second=5:",
        "--connection-max-request-bytes=-1",
    ] {
        assert!(parsed(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_hardened_server_listens_on_localhost_by_default() {
    let flags = parsed(&["--hardened", "--id=mine"]).expect("good");
    assert_eq!((&*flags.http.address, &*flags.grpc.address), ("127.0.0.1", "127.0.0.1"));
    assert_eq!((flags.has_console, &*flags.serve.engine.server_id), (Some(false), "mine"));
    // In whatever order: it gives defaults only.
    for words in [["--grpc-address=::", "--hardened"], ["--hardened", "--grpc-address=::"]] {
        let flags = parsed(&words).expect("good");
        assert_eq!((&*flags.http.address, &*flags.grpc.address), ("127.0.0.1", "::"));
    }
    let flags = parsed(&[]).expect("good");
    assert_eq!((&*flags.http.address, flags.has_console), ("0.0.0.0", None));
}

#[test]
fn the_model_cache_has_a_folder_and_a_size() {
    let given = parsed(&["--repository-cache-directory=/cache", "--repository-cache-size=20G"]);
    let cache = given.expect("good").serve.repository_cache;
    assert_eq!(cache.directory, std::path::Path::new("/cache"));
    assert_eq!(cache.size, galatea_serve::MemorySize::Bytes(20 << 30));
    assert!(parsed(&["--repository-cache-size=much"]).is_err());
}

#[test]
fn the_memory_budget_is_in_bytes_or_a_share() {
    use galatea_serve::MemorySize;
    assert_eq!(parsed(&[]).expect("good").serve.memory_budget, MemorySize::Percent(50));
    let given = parsed(&["--memory-budget=300M"]).expect("good");
    assert_eq!(given.serve.memory_budget, MemorySize::Bytes(300 << 20));
    refused(
        &["--memory-budget=much"],
        "Bad option: \"--memory-budget\". --memory-budget option format is <bytes>, <number>K|M|G|T or <percent>%. \
         Got much",
    );
}

#[test]
fn rate_limiter_resources_are_parsed() {
    let given = ["R:4", "R:3:0", "R:5:0", "S:2:-1", "S:-4", "T:-1:1"];
    let line = given.map(|resource| format!("--rate-limit-resource={resource}"));
    let flags = parsed(&line.each_ref().map(String::as_str)).expect("good");
    let found = flags.rate_limit_resources.iter().map(|r| (r.name.as_str(), r.count, r.device));
    let expected = [("R", 4, None), ("R", 3, Some(0)), ("S", 2, None), ("T", u64::MAX, Some(1))];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn host_policies_must_suit_this_machine() {
    let flags = parsed(&["--host-policy=mine,cpu-cores=0-1023"]).expect("good");
    assert!(flags.serve.engine.execution.host_policies.get("mine").is_some());
    for (value, reason) in [
        (
            "cpu-cores=1",
            "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 1",
        ),
        ("numa-node=a", "Parsing 'numa-node' value: Can't parse 'a' to integer"),
    ] {
        let option = format!("--host-policy=cpu,{value}");
        refused(&[&option], &format!("setting host policy: Invalid argument - {reason}"));
    }
}

#[test]
fn trace_levels_add_up_and_only_the_deprecated_off_wins() {
    let levels = |words: &[&str]| parsed(words).expect("good").serve.trace.settings.levels.names();
    let (timestamps, tensors) = ("--trace-config=level=Timestamps", "--trace-config=level=tensors");
    assert_eq!(levels(&[timestamps, "--trace-config=level=OFF"]), ["TIMESTAMPS"]);
    assert_eq!(levels(&[tensors, timestamps]), ["TIMESTAMPS", "TENSORS"]);
    assert_eq!(levels(&["--trace-level=MIN", tensors]), ["TIMESTAMPS", "TENSORS"]);
    assert_eq!(levels(&["--trace-level=OFF", tensors]), ["OFF"]);
    for name in ["true", "on", "min", "MAX"] {
        assert_eq!(levels(&[&format!("--trace-config=level={name}")]), ["TIMESTAMPS"], "{name}");
    }
    assert_eq!(levels(&["--trace-config=triton,level=TENSORS"]), ["OFF"]);
}

#[test]
fn trace_settings_without_effect_are_warned_about() {
    let warned = |words: &[&str]| -> Vec<String> {
        let words: Vec<_> = words.iter().map(|word| format!("--trace-config={word}")).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let notices = parsed(&words).expect("good").notices.into_iter();
        let text = |notice| match notice {
            Notice::Warning(text) => Some(text),
            _ => None,
        };
        notices.filter_map(text).collect()
    };
    for setting in ["LEVEL=MIN", "triton,level=MIN"] {
        let name = setting.trim_end_matches("=MIN");
        let text = format!("--trace-config {name} has no effect: there is no such setting");
        assert_eq!(warned(&[setting]), [text]);
    }
    let [text] = &*warned(&["mode=opentelemetry", "opentelemetry,ulr=x"]) else { panic!("one") };
    assert!(text.contains("opentelemetry,ulr has no effect"), "{text}");
    let [text] = &*warned(&["opentelemetry,url=http://h"]) else { panic!("one") };
    assert!(text.ends_with("without --trace-config mode=opentelemetry"), "{text}");
    let [text] = &*warned(&["level=MIN"]) else { panic!("one") };
    assert!(text.contains("--trace-config triton,file=<path>"), "{text}");
    for good in [&["level=MIN", "triton,file=f"][..], &["level=MIN", "mode=opentelemetry"]] {
        assert!(warned(good).is_empty(), "{good:?}");
    }
}

#[test]
fn trace_settings_win_over_their_deprecated_options() {
    let flags = parsed(&[
        "--trace-config=rate=5",
        "--trace-rate=7",
        "--trace-count=-5",
        "--trace-file=/old",
        "--trace-config=triton,log-frequency=3",
        "--trace-config=triton,level=X",
        "--trace-config=opentelemetry,url=y",
        "--trace-config=TRITON,file=/new",
        "--trace-model-calls=1",
    ]);
    let trace = flags.expect("good").serve.trace;
    let Settings { rate, count, log_frequency, .. } = trace.settings;
    assert_eq!((rate, count, log_frequency), (5, -5, 3));
    assert_eq!(trace.file.to_str(), Some("/new"));
    assert_eq!(trace.others, [("level".to_owned(), "X".to_owned())]);
    assert!(trace.traces_all_calls);
}

#[test]
fn settings_of_opentelemetry_are_kept_and_shown_as_given() {
    let given = [
        "mode=OpenTelemetry",
        "triton,file=/unused",
        "opentelemetry,url=http://h:1/x",
        "opentelemetry,resource=a=b=c",
        "opentelemetry,protocol=grpc",
        "opentelemetry,bsp_schedule_delay=7",
        "opentelemetry,foo=bar",
        "opentelemetry,resource=d=",
    ];
    let words = given.map(|setting| format!("--trace-config={setting}"));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let serve = parsed(&words).expect("good").serve;
    let shown: Vec<_> = serve.trace.others.iter().map(|(name, v)| format!("{name}={v}")).collect();
    let expected = given[2..].iter().map(|setting| setting.replace("opentelemetry,", ""));
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let export = serve.trace_export;
    assert_eq!(export.url.as_deref(), Some("http://h:1/x"));
    assert_eq!((export.resource.len(), &*export.resource[0].value), (2, "b=c"));
    assert_eq!(export.batch.schedule_delay, Some(7));
    let refusal = |setting: &str, reason: &str| {
        let (word, key) =
            (format!("--trace-config=opentelemetry,{setting}"), setting.split('=').next());
        let key = key.unwrap_or_default();
        refused(&[&word], &format!("Bad option: \"--trace-config opentelemetry,{key}\". {reason}"));
    };
    refusal("bsp_max_queue_size=x", "Invalid option value. Got x, expected a number");
    refusal(
        "protocol=soap",
        "invalid value for protocol option: soap (use http/json, http/protobuf or grpc)",
    );
    refusal("resource=x", "invalid value for resource option: x (use <name>=<value>)");
}

#[test]
fn numbers_below_their_range_are_raised() {
    let flags = parsed(&["--exit-timeout-secs=-1", "--model-load-thread-count=-3"]).expect("good");
    assert_eq!(flags.serve.engine.exit_timeout, std::time::Duration::ZERO);
    assert_eq!(flags.serve.engine.load_thread_count, 1);
    for (level, expected) in [("true", 1), ("FALSE", 0), ("-1", 0), ("3", 3)] {
        let flags = parsed(&["--log-verbose", level]).expect("good");
        assert_eq!(flags.serve.log.verbose_level, expected, "{level}");
    }
}

#[test]
fn a_new_flag_overrides_its_deprecated_form_in_any_order() {
    for line in [
        ["--strict-model-config=false", "--disable-auto-complete-config"],
        ["--disable-auto-complete-config", "--strict-model-config=false"],
    ] {
        let flags = parsed(&line).expect("good");
        assert!(!flags.serve.engine.auto_completes_config && flags.notices.len() == 2, "{line:?}");
    }
    let last = parsed(&["--strict-model-config=true", "--strict-model-config=false"]);
    assert!(last.expect("good").serve.engine.auto_completes_config);
}

#[test]
fn help_lists_every_flag_within_80_columns() {
    let text = help("tritonserver", Words::Refused);
    assert!(text.starts_with("Usage: tritonserver [options]\n  -h, --help\n"), "{text}");
    for flag in all() {
        let name = format!("--{}", flag.names.long);
        assert!(text.contains(&format!("\n  {name}")) || name == "--help", "{name}");
    }
    for title in ["\n\nServer:\n", "\n\nGRPC:\n", "\n\nDEPRECATED:\n"] {
        assert!(text.contains(title), "{title:?}");
    }
    let longest = text.lines().filter(|l| l.starts_with("   ")).map(str::len).max();
    assert!(longest.is_some_and(|n| n <= 80), "{longest:?}");
}

#[test]
fn requested_metrics_are_parsed() {
    let flags = parsed(&[
        "--metrics-config=histogram_latencies=true",
        "--metrics-config=summary_latencies=true",
        "--metrics-config=summary_quantiles=0.1:0.0.1,0.7:0.01",
    ]);
    let flags = flags.expect("good");
    let metrics = &flags.serve.engine.metrics;
    assert!(metrics.has_histogram_latencies && metrics.has_summary_latencies);
    assert_eq!(metrics.summary_quantiles, [0.1, 0.7]);
    assert!(flags.notices.is_empty(), "{:?}", flags.notices);
}

#[test]
fn invalid_quantiles_are_ignored_with_a_warning() {
    let flags = parsed(&["--metrics-config=summary_quantiles=foo,x:y,1.5:0.1,-1:0,nan:1,0.25:"]);
    let flags = flags.expect("as in Triton");
    assert_eq!(flags.notices.len(), 6);
    assert_eq!(flags.serve.engine.metrics.summary_quantiles, [0.5, 0.9, 0.95, 0.99, 0.999]);
    let text = format!("{:?}", flags.notices[2]);
    assert!(
        text.contains("--metrics-config: '1.5:0.1' of summary_quantiles is left out"),
        "{text}"
    );
    let unknown = parsed(&["--metrics-config=unknown=1"]).expect("as in Triton");
    let text = format!("{:?}", unknown.notices);
    assert!(text.contains("histogram_latencies, summary_latencies"), "{text}");
}
