//! Values that are refused one by one, in perf_analyzer's words.

use super::{error, error_of, run};

#[test]
fn unsupported_options_are_refused_by_name() {
    for kind in ["triton_c_api", "tfserving", "torchserve", "openai", "dynamic_grpc"] {
        assert_eq!(
            error(&format!("--service-kind={kind}")),
            format!(
                "--service-kind {kind} is not supported: the one kind is 'triton', any KServe v2 server \
                 over HTTP or gRPC"
            )
        );
    }
    assert_eq!(
        error("--service-kind foo"),
        "Failed to parse --service-kind. Unsupported type provided: 'foo'. The available option is 'triton'."
    );
    assert_eq!(
        error("--session-concurrency 3"),
        "--session-concurrency is not supported: Session concurrency mode is only supported with OpenAI \
         service kind."
    );
    for (line, name) in [
        ("--fixed-schedule", "--fixed-schedule"),
        ("--enable-mpi", "--enable-mpi"),
        ("--shared-memory cuda", "--shared-memory cuda"),
    ] {
        assert!(error(line).starts_with(&format!("{name} is not supported: ")), "{line}");
    }
    assert_eq!(
        error("--grpc-method hello.world/Service/Method"),
        "Received gRPC method name 'hello.world/Service/Method' that does not match the format: \
         <package>.<service>/<method>."
    );
    for wrong in ["hello.world.Service.Method", "Service/Method", "a.b/", ".b/c", "a./c"] {
        assert!(
            error(&format!("--grpc-method {wrong}")).contains("does not match the format"),
            "{wrong}"
        );
    }
}

/// Line, and what comes after `Failed to parse `.
const REQUIREMENTS: &[(&str, &str)] = &[
    ("--max-threads 0", "--max-threads. The value must be > 0."),
    ("--measurement-interval 0", "--measurement-interval (-p). The value must be > 0 msec."),
    ("-p -200", "--measurement-interval (-p). The value must be > 0 msec."),
    ("-l -1", "--latency-threshold (-l). The value must be >= 0 msecs."),
    ("--latency-threshold=-1", "--latency-threshold (-l). The value must be >= 0 msecs."),
    ("-s -1", "--stability-percentage (-s). The value must be >= 0.0."),
    ("-r 0", "--max-trials (-r). The value must be > 0."),
    ("--string-length 0", "--string-length. The value must be > 0"),
    ("--num-of-sequences 0", "--num-of-sequences. The value must be > 0."),
    ("--output-shared-memory-size=-1", "--output-shared-memory-size. The value must be >= 0."),
    ("--measurement-request-count 0", "--measurement-request-count. The value must be > 0."),
    ("--request-period 0", "--request-period. The value must be > 0"),
    ("--request-count=-3", "--request-count. The value must be > 0."),
    ("--warmup-request-count=-3", "--warmup-request-count. The value must be >= 0."),
    ("-b 0", "-b (batch size). The value must be > 0."),
    ("-c -1", "-c. The value must be >= 0."),
    ("--metrics-interval 0", "--metrics-interval. The value must be > 0 msecs."),
    ("--trace-rate=-1", "--trace-rate. The value must be >= 0."),
    ("--trace-count=-2", "--trace-count. The value must be >= 0 or set to -1 (default)."),
    ("--log-frequency=-1", "--log-frequency. The value must be >= 0."),
    ("--ssl-https-verify-peer 3", "--ssl-https-verify-peer. The value must be either 0 or 1."),
    ("--ssl-https-verify-peer abc", "--ssl-https-verify-peer. The value must be either 0 or 1."),
    ("--ssl-https-verify-host 3", "--ssl-https-verify-host. The value must be either 0, 1, or 2."),
    ("-i HTTP2", "-i (protocol). The value should be either HTTP or gRPC."),
    (
        "--percentile 0",
        "--percentile. The value must be -1 for not reporting or in range (0, 100).",
    ),
    (
        "--percentile 100",
        "--percentile. The value must be -1 for not reporting or in range (0, 100).",
    ),
    (
        "--percentile=-2",
        "--percentile. The value must be -1 for not reporting or in range (0, 100).",
    ),
    (
        "--percentile 351",
        "--percentile. The value must be -1 for not reporting or in range (0, 100).",
    ),
    ("--sequence-length-variation=-3", "--sequence-length-variation. The value must be >= 0.0."),
    (
        "--concurrency-range 1:2:3:4",
        "--concurrency-range. The value does not match <start:end:step>.",
    ),
    ("--concurrency-range 1:2:0", "--concurrency-range. The <step> value must be > 0."),
    (
        "--request-rate-range 1:2:3:4",
        "--request-rate-range. The value does not match <start:end:step>.",
    ),
    ("--request-rate-range 0", "--request-rate-range. The start of the search range must be > 0."),
    ("--request-rate-range=-3", "--request-rate-range. The start of the search range must be > 0."),
    (
        "--request-rate-range 1:-2",
        "--request-rate-range. The end of the search range must be >= 0.",
    ),
    ("--request-rate-range 1:2:0", "--request-rate-range. The <step> value must be > 0."),
    ("--request-rate-range 1:2:-1", "--request-rate-range. The <step> value must be > 0."),
    (
        "--periodic-concurrency-range 1",
        "--periodic-concurrency-range. Both <start> and <end> values must be provided.",
    ),
    (
        "--periodic-concurrency-range 1:5:3",
        "--periodic-concurrency-range. The <step> value must be a factor of the range size (<end> - \
         <start>).",
    ),
    (
        "--periodic-concurrency-range 5:1",
        "--periodic-concurrency-range. The <start> must be <= <end>.",
    ),
    (
        "--periodic-concurrency-range 0:1",
        "--periodic-concurrency-range. The <start> value must be > 0.",
    ),
    (
        "--periodic-concurrency-range 1:5:0",
        "--periodic-concurrency-range. The <step> value must be > 0.",
    ),
    (
        "--periodic-concurrency-range 1:5:1:1",
        "--periodic-concurrency-range. The value does not match <start:end:step>.",
    ),
];

#[test]
fn values_out_of_bounds_are_refused() {
    for (line, expected) in REQUIREMENTS {
        assert_eq!(error(line), format!("Failed to parse {expected}"), "{line}");
    }
}

/// Option, a wrong value, and what comes after `Unsupported type provided: '...'. `.
const CHOICES: &[(&str, &str, &str)] = &[
    ("--request-distribution", "foo", "Choices are 'poisson' or 'constant'."),
    (
        "--shared-memory",
        "foo",
        "The available options are 'system', 'cuda', or 'none'. This program has 'memfd' as well, and refuses 'cuda'.",
    ),
    (
        "--grpc-compression-algorithm",
        "foo",
        "The available options are 'gzip', 'deflate', or 'none'.",
    ),
    ("--measurement-mode", "foo", "The available options are 'time_windows' or 'count_windows'."),
    ("--ssl-https-client-certificate-type", "pem", "The available options are 'PEM' or 'DER'."),
    ("--ssl-https-private-key-type", "FOO", "The available options are 'PEM' or 'DER'."),
    ("--trace-level", "off", "The available options are 'OFF', 'TIMESTAMPS', or 'TENSORS'."),
    ("--input-tensor-format", "foo", "The available options are 'binary' or 'json'."),
    ("--output-tensor-format", "foo", "The available options are 'binary' or 'json'."),
];

#[test]
fn invalid_choices_are_refused() {
    for (option, wrong, available) in CHOICES {
        assert_eq!(
            error(&format!("{option} {wrong}")),
            format!("Failed to parse {option}. Unsupported type provided: '{wrong}'. {available}")
        );
    }
}

/// perf_analyzer takes the number that such text begins with, wraps it around, or aborts.
#[test]
fn non_numeric_values_are_refused() {
    const NUMBERS: &[&str] = &[
        "--max-threads",
        "--sequence-length",
        "--percentile",
        "--measurement-interval",
        "-p",
        "--latency-threshold",
        "-l",
        "--stability-percentage",
        "-s",
        "--max-trials",
        "-r",
        "--string-length",
        "--num-of-sequences",
        "--output-shared-memory-size",
        "--measurement-request-count",
        "--trace-rate",
        "--trace-count",
        "--log-frequency",
        "--metrics-interval",
        "--sequence-length-variation",
        "--request-period",
        "--request-count",
        "--warmup-request-count",
        "-b",
        "-t",
        "-c",
        "--concurrency-range",
        "--request-rate-range",
        "--periodic-concurrency-range",
        "--sequence-id-range",
    ];
    for option in NUMBERS {
        for wrong in ["abc", "3x", "", "1:", "0x10", "nan", "1e999"] {
            let text = error_of(&["-m", "x", option, wrong]);
            let start =
                format!("Failed to parse {option}. Invalid value provided: {wrong} (expected ");
            assert!(text.starts_with(&start), "{option} '{wrong}': {text}");
        }
    }
}

#[test]
fn numbers_that_are_too_large_are_refused_by_name() {
    for line in
        ["--max-trials 99999999999", "-b 99999999999999999999", "--percentile 99999999999999999999"]
    {
        assert!(error(line).contains("(expected a smaller number)"), "{line}");
    }
    for line in [
        "--concurrency-range -1",
        "--concurrency-range 1:-2",
        "--concurrency-range 100,400,10",
        "--concurrency-range 1::",
        "--concurrency-range 99999999999999999999",
        "--concurrency-range 1.5",
    ] {
        let (_, value) = line.split_once(' ').unwrap();
        assert_eq!(
            error(line),
            format!(
                "Failed to parse --concurrency-range. Invalid value provided: {value} (expected whole \
                 numbers: start, start:end or start:end:step)"
            )
        );
    }
}

/// The name in the error is the one used, the long one in full.
#[test]
fn errors_name_the_form_of_the_option_as_typed() {
    assert!(error("-p foobar").starts_with("Failed to parse -p. Invalid value provided: foobar "));
    assert!(
        error("--measurement-int foobar")
            .starts_with("Failed to parse --measurement-interval. Invalid ")
    );
}

#[test]
fn a_sequence_length_of_zero_is_a_warning() {
    for line in ["--sequence-length 0", "--sequence-length=-5"] {
        let (settings, warnings) = run(line);
        assert_eq!((settings.sequences.length, settings.sequences.length_specified), (20, true));
        assert_eq!(
            warnings,
            "WARNING: The sequence length must be > 0. Perf Analyzer will use default value if it is \
             measuring on sequence model.\n"
        );
    }
}
