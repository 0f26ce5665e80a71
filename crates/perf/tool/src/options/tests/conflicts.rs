//! Checks of options against each other.

use galatea_perf_types::settings::{Load, Range, Search};

use super::{error, error_of, run, settings, with_file};

const SEVERAL_MODES: &str = "Cannot specify more then one inference load mode. Please choose only one of the \
    following modes: --concurrency-range, --periodic-concurrency-range, --request-rate-range, or \
    --request-intervals.";
const BOTH_ZERO: &str =
    "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously";

const LINES: &[(&str, &str)] = &[
    ("--concurrency-range 0", "The start of the search range must be > 0"),
    ("-t 0", "The start of the search range must be > 0"),
    ("-t -1", "The start of the search range must be > 0"),
    ("--streaming", "Streaming is only allowed with gRPC protocol and Triton C API."),
    (
        "--grpc-compression-algorithm none",
        "Using compression algorithm is only allowed with gRPC protocol.",
    ),
    (
        "--input-data zero --input-data .",
        "The -z flag cannot be set when --data-directory is provided.",
    ),
    ("-z --data-directory .", "The -z flag cannot be set when --data-directory is provided."),
    ("-a --sync", "Cannot specify --async and --sync simultaneously."),
    ("-i grpc --streaming --sync", "can not use streaming with synchronous API"),
    ("--concurrency-range 2 -t 3", "Cannot use deprecated options with --concurrency-range."),
    ("--concurrency-range 2 -d", "Cannot use deprecated options with --concurrency-range."),
    ("--concurrency-range 2 -c 2", "Cannot use deprecated options with --concurrency-range."),
    ("--request-rate-range 10 -t 3", "Cannot use concurrency options with --request-rate-range."),
    ("--request-rate-range 10 --concurrency-range 3", SEVERAL_MODES),
    ("--request-rate-range 10 --periodic-concurrency-range 1:3", SEVERAL_MODES),
    ("--concurrency-range 10 --periodic-concurrency-range 1:3", SEVERAL_MODES),
    (
        "--periodic-concurrency-range 1:10",
        "The --periodic-concurrency-range option requires bi-directional gRPC streaming.",
    ),
    (
        "--periodic-concurrency-range 1:10 -i grpc --streaming",
        "Must provide --profile-export-file when using the --periodic-concurrency-range option.",
    ),
    (
        "--request-parameter a:1:int",
        "The --request-parameter option is currently only supported by gRPC protocol.",
    ),
    ("--concurrency-range 4:0", BOTH_ZERO),
    ("--request-rate-range 4:0", BOTH_ZERO),
    ("--request-rate-range 4:0.0 -l 0", BOTH_ZERO),
    ("-d", BOTH_ZERO),
    (
        "--binary-search --concurrency-range 1:0 -l 10",
        "The end of the range can not be 0 (or 0.0) for binary search mode.",
    ),
    ("--binary-search", "The --latency-threshold cannot be 0 for binary search mode."),
    (
        "--binary-search --concurrency-range 1:10",
        "The --latency-threshold cannot be 0 for binary search mode.",
    ),
    (
        "--binary-search --concurrency-range 10:1 -l 10",
        "The end of the range can not be less than start of the range for binary search mode.",
    ),
    (
        "--binary-search --request-rate-range 10 -l 10",
        "The end of the range can not be less than start of the range for binary search mode.",
    ),
    (
        "--warmup-request-count 3 --concurrency-range 1:3",
        "--warmup-request-count not supported with multiple concurrency values in one run",
    ),
    (
        "--warmup-request-count 3 --request-rate-range 1:3",
        "--warmup-request-count not supported with multiple request rate values in one run",
    ),
    ("--request-count 5 --concurrency-range 8", "request-count can not be less than concurrency"),
    (
        "--request-count 5 --concurrency-range 1:4",
        "request-count not supported with multiple concurrency values in one run",
    ),
    ("--request-count 5 --request-rate-range 8", "request-count can not be less than request-rate"),
    (
        "--request-count 20 --request-rate-range 5:6",
        "request-count not supported with multiple request-rate values in one run",
    ),
    ("--metrics-url foo", "Must specify --collect-metrics when using the --metrics-url option."),
    (
        "--metrics-interval 5",
        "Must specify --collect-metrics when using the --metrics-interval option.",
    ),
];

#[test]
fn conflicting_options_are_refused() {
    for (line, expected) in LINES {
        assert_eq!(error(line), *expected, "{line}");
    }
}

#[test]
fn request_intervals_exclude_other_loads() {
    for (rest, expected) in [
        ("--concurrency-range 4", SEVERAL_MODES),
        ("--request-rate-range 4", SEVERAL_MODES),
        ("-t 4", "Cannot use deprecated options with --request-intervals."),
    ] {
        let line = format!("--request-intervals {{file}} {rest}");
        with_file("5\n", &line, |line, _| assert_eq!(error(line), expected));
    }
}

#[test]
fn request_intervals_disable_the_search() {
    with_file("5\n", "--request-intervals {file} --binary-search", |line, _| {
        assert_eq!(settings(line).search, Search::Linear);
    });
}

/// A missing model name is reported before any check of options against each other.
#[test]
fn a_missing_model_is_reported_first() {
    for line in
        [&["--streaming"][..], &["-a", "--sync"], &["--concurrency-range", "4:0"], &["-m", ""]]
    {
        assert_eq!(error_of(line), "Failed to parse -m (model name). The value must be specified.");
    }
}

#[test]
fn a_range_with_a_latency_threshold_may_be_open_ended() {
    let open = settings("--concurrency-range 4:0 -l 10");
    assert_eq!(open.load, Load::Concurrency(Range { start: 4, end: 0, step: 1 }));
    assert_eq!(open.latency_limit, Some(10));
    let Load::RequestRate { range, .. } = settings("--request-rate-range 4:0:2 -l 1").load else {
        panic!("no rate")
    };
    assert_eq!(range, Range { start: 4.0, end: 0.0, step: 2.0 });
}

#[test]
fn periodic_concurrency_sets_its_own_threads() {
    let line = "-i grpc --streaming --profile-export-file new --periodic-concurrency-range 1:10 \
                --max-threads 2";
    let (_, warnings) = run(line);
    assert_eq!(
        warnings,
        "WARNING: Overriding max_threads specification to ensure requested concurrency range.\n"
    );
}

#[test]
fn a_request_count_is_compared_with_the_whole_rate() {
    assert_eq!(settings("--request-count 5 --request-rate-range 5.9").request_count, Some(5));
}

#[test]
fn memory_without_a_name_needs_a_unix_socket_for_http() {
    for (line, needle) in [
        ("--shared-memory memfd", "-u unix:PATH or --shared-memory-url=unix:PATH"),
        ("--shared-memory memfd -u h:1", "-u unix:PATH or --shared-memory-url=unix:PATH"),
        ("--shared-memory memfd -i grpc", "-u unix:PATH or --shared-memory-url=unix:PATH"),
        (
            "--shared-memory memfd -i grpc -u unix:/a",
            "--shared-memory-url=unix:PATH beside -i grpc",
        ),
        ("--shared-memory memfd --shared-memory-url h:1", "'h:1' is no Unix socket"),
        (
            "--shared-memory system --shared-memory-url unix:/a",
            "Must specify --shared-memory=memfd",
        ),
        ("--shared-memory-url unix:/a", "Must specify --shared-memory=memfd"),
    ] {
        let error = error(line);
        assert!(error.contains(needle), "{line}: {error}");
    }
}
