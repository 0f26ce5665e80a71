//! The effect of each option on the settings, and that nothing else changes them.

use std::path::PathBuf;

use galatea_client::{Compression, Protocol, TensorFormat};
use galatea_command_line::{OptionRow, Support, rows};
use galatea_perf_types::settings::{
    DataSource, Distribution, Load, Range, Search, Settings, SharedMemory, Verbosity, Window,
};
use galatea_types::ParameterValue;

use super::{run, settings};
use crate::options::given_options::GivenOptions;

fn path(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text))
}

#[test]
fn options_have_defaults() {
    let settings = settings("");
    assert_eq!(settings.model_name, "x");
    assert_eq!(settings.model_version, "");
    assert_eq!(settings.url, "localhost:8000");
    assert_eq!(settings.protocol, Protocol::Http);
    assert_eq!(settings.verbosity, Verbosity::Quiet);
    assert_eq!(settings.batch_size, 1);
    assert_eq!(settings.load, Load::Concurrency(Range { start: 1, end: 1, step: 1 }));
    assert_eq!(settings.search, Search::Linear);
    assert_eq!(settings.latency_limit, None);
    assert_eq!(settings.window, Window::Time(5000));
    assert_eq!(settings.stability, 0.1);
    assert_eq!(settings.max_trials, 10);
    assert_eq!(settings.percentile, None);
    assert_eq!(settings.request_count, None);
    assert_eq!(settings.warmup_request_count, 0);
    assert_eq!(settings.max_threads, None);
    assert!(
        !settings.calls.asynchronous && !settings.calls.forced_sync && !settings.calls.streaming
    );
    let sequences = settings.sequences;
    assert_eq!((sequences.count, sequences.length, sequences.length_specified), (4, 20, false));
    assert_eq!((sequences.length_variation, sequences.serial), (20.0, false));
    assert_eq!((sequences.first_id, sequences.id_count), (1, None));
    assert_eq!(settings.data.source, DataSource::Random);
    assert_eq!((settings.data.string_length, settings.data.string_data), (128, None));
    assert_eq!(settings.data.input_format, TensorFormat::Binary);
    assert_eq!(settings.data.output_format, TensorFormat::Binary);
    assert!(settings.data.shapes.is_empty());
    assert_eq!(settings.shared_memory, SharedMemory::None);
    assert_eq!(settings.shared_memory_url, None);
    assert_eq!(settings.output_region_size, 102_400);
    assert!(settings.request_parameters.is_empty() && settings.headers.is_empty());
    assert_eq!(settings.compression, Compression::None);
    assert!(settings.tls.is_none() && settings.metrics.is_none());
    assert!(settings.bls_composing_models.is_empty() && settings.trace.fields.is_empty());
    assert_eq!((settings.csv_file, settings.verbose_csv), (None, false));
    assert_eq!((settings.profile_export_file, settings.json_file), (None, None));
    assert_eq!((settings.html_file, settings.label), (None, None));
    assert!(settings.compare.is_empty());
}

type Check = fn(&Settings) -> bool;

/// A line for each option that sets something and needs no file.
const LINES: &[(&str, Check)] = &[
    ("-m y", |s| s.model_name == "y"),
    ("-x 3", |s| s.model_version == "3"),
    ("-u host:1", |s| s.url == "host:1"),
    ("-i GRPC", |s| s.protocol == Protocol::Grpc && s.url == "localhost:8001"),
    ("-i HttP", |s| s.protocol == Protocol::Http),
    ("-b 7", |s| s.batch_size == 7),
    ("-v", |s| s.verbosity == Verbosity::Verbose),
    ("--service-kind triton", |s| s.url == "localhost:8000"),
    ("--bls-composing-models a:1,b", |s| s.bls_composing_models.len() == 2),
    ("--grpc-method hello.world.Service/Method", |s| s.protocol == Protocol::Http),
    ("-a", |s| s.calls.asynchronous),
    ("--async", |s| s.calls.asynchronous),
    ("--sync", |s| s.calls.forced_sync && !s.calls.asynchronous),
    ("--concurrency-range 2:8:3", |s| {
        s.load == Load::Concurrency(Range { start: 2, end: 8, step: 3 })
    }),
    ("--request-rate-range 2.5", |s| {
        let range = Range { start: 2.5, end: 1.0, step: 1.0 };
        s.load == Load::RequestRate { range, distribution: Distribution::Constant }
    }),
    ("--request-rate-range 5 --request-distribution poisson", |s| {
        matches!(s.load, Load::RequestRate { distribution: Distribution::Poisson, .. })
    }),
    ("--request-period 3", |s| matches!(s.load, Load::Concurrency(_))),
    (
        "-i grpc --streaming --profile-export-file new --periodic-concurrency-range 1:9:2 --request-period 3",
        |s| {
            s.load
                == Load::PeriodicConcurrency {
                    range: Range { start: 1, end: 9, step: 2 },
                    period: 3,
                }
        },
    ),
    ("--binary-search -l 5 --concurrency-range 1:8", |s| s.search == Search::Binary),
    ("-l 5", |s| s.latency_limit == Some(5)),
    ("--latency-threshold 0", |s| s.latency_limit.is_none()),
    ("--measurement-mode count_windows", |s| s.window == Window::Count(50)),
    ("--measurement-mode count_windows --measurement-request-count 9", |s| {
        s.window == Window::Count(9)
    }),
    ("--measurement-request-count 9", |s| s.window == Window::Time(5000)),
    ("--measurement-interval 9", |s| s.window == Window::Time(9)),
    ("-p 9", |s| s.window == Window::Time(9)),
    ("-s 29.5", |s| s.stability == 0.295),
    ("--stability-percentage 0", |s| s.stability == 0.0),
    ("-r 3", |s| s.max_trials == 3),
    ("--max-trials 3", |s| s.max_trials == 3),
    ("--percentile 95", |s| s.percentile == Some(95)),
    ("--request-count 100", |s| s.request_count == Some(100) && s.window == Window::Count(100)),
    ("--request-count 0", |s| s.request_count.is_none() && s.window == Window::Time(5000)),
    ("--warmup-request-count 5", |s| s.warmup_request_count == 5),
    ("--max-threads 3", |s| s.max_threads == Some(3)),
    ("--num-of-sequences 3", |s| s.sequences.count == 3),
    ("--serial-sequences", |s| s.sequences.serial),
    ("-t 5", |s| s.load == Load::Concurrency(Range { start: 5, end: 1, step: 1 })),
    ("-t 2 -c 6", |s| s.load == Load::Concurrency(Range { start: 2, end: 1, step: 1 })),
    ("-d -c 6", |s| s.load == Load::Concurrency(Range { start: 1, end: 6, step: 1 })),
    ("-d -l 5", |s| s.load == Load::Concurrency(Range { start: 1, end: 0, step: 1 })),
    ("--input-data zero", |s| s.data.source == DataSource::Zero),
    ("--input-data random", |s| s.data.source == DataSource::Random),
    ("-z", |s| s.data.source == DataSource::Zero),
    ("--input-data .", |s| s.data.source == DataSource::Files(vec![".".into()])),
    ("--data-directory .", |s| s.data.source == DataSource::Files(vec![".".into()])),
    ("--shape a:1,2", |s| s.data.shapes["a"] == [1, 2]),
    ("--string-length 3", |s| s.data.string_length == 3),
    ("--string-data word", |s| s.data.string_data.as_deref() == Some("word")),
    ("--shared-memory system", |s| s.shared_memory == SharedMemory::System),
    ("--shared-memory memfd -u unix:/a", |s| {
        s.shared_memory == SharedMemory::Memfd && s.shared_memory_url.is_none()
    }),
    ("--shared-memory memfd -i grpc --shared-memory-url unix:///a", |s| {
        s.url == "localhost:8001" && s.shared_memory_url.as_deref() == Some("unix:///a")
    }),
    ("--shared-memory none", |s| s.shared_memory == SharedMemory::None),
    ("--output-shared-memory-size 0", |s| s.output_region_size == 0),
    ("--sequence-length 9", |s| s.sequences.length == 9 && s.sequences.length_specified),
    ("--sequence-length-variation 33.3", |s| s.sequences.length_variation == 33.3),
    ("--sequence-id-range 53:67", |s| {
        (s.sequences.first_id, s.sequences.id_count) == (53, Some(14))
    }),
    ("--input-tensor-format JSON", |s| s.data.input_format == TensorFormat::Json),
    ("--output-tensor-format json", |s| s.data.output_format == TensorFormat::Json),
    ("-i grpc --request-parameter n:1:INT", |s| {
        s.request_parameters == [("n".to_owned(), ParameterValue::Int(1))]
    }),
    ("-i grpc --streaming", |s| s.calls.streaming && s.calls.asynchronous),
    ("-H a:b", |s| s.headers == [("a".to_owned(), "b".to_owned())]),
    ("-i grpc --grpc-compression-algorithm gzip", |s| s.compression == Compression::Gzip),
    ("-i grpc --grpc-compression-algorithm deflate", |s| s.compression == Compression::Deflate),
    ("-i grpc --ssl-grpc-use-ssl", |s| s.tls.is_some()),
    ("-u https://h --ssl-https-verify-peer 0", |s| {
        s.tls.as_ref().is_some_and(|tls| tls.skips_peer)
    }),
    ("-u https://h --ssl-https-verify-host 0", |s| {
        s.tls.as_ref().is_some_and(|tls| tls.skips_host)
    }),
    ("-u https://h --ssl-https-client-certificate-type DER", |s| {
        s.tls.as_ref().is_some_and(|tls| tls.certificate_is_der && !tls.private_key_is_der)
    }),
    ("-u https://h --ssl-https-private-key-type DER", |s| {
        s.tls.as_ref().is_some_and(|tls| !tls.certificate_is_der && tls.private_key_is_der)
    }),
    ("-f out.csv", |s| s.csv_file == path("out.csv")),
    ("--verbose-csv", |s| s.verbose_csv),
    ("--profile-export-file new.json", |s| s.profile_export_file == path("new.json")),
    ("--collect-metrics", |s| {
        s.metrics
            .as_ref()
            .is_some_and(|m| m.url == "localhost:8002/metrics" && m.interval.as_secs() == 1)
    }),
    ("--collect-metrics -u unix:/a", |s| {
        s.metrics.as_ref().is_some_and(|m| m.url == "localhost:8002/metrics")
    }),
    ("--collect-metrics --metrics-url h:1/m", |s| {
        s.metrics.as_ref().is_some_and(|m| m.url == "h:1/m")
    }),
    ("--collect-metrics --metrics-interval 5", |s| {
        s.metrics.as_ref().is_some_and(|m| m.interval.as_millis() == 5)
    }),
    ("--trace-level TIMESTAMPS", |s| s.trace.fields["trace_level"] == ["TIMESTAMPS"]),
    ("--trace-rate 5", |s| s.trace.fields["trace_rate"] == ["5"]),
    ("--trace-count -1", |s| s.trace.fields["trace_count"] == ["-1"]),
    ("--log-frequency 0", |s| s.trace.fields["log_frequency"] == ["0"]),
    ("--json out", |s| s.json_file == path("out")),
    ("--json -", |s| s.json_file == path("-")),
    ("--html out", |s| s.html_file == path("out")),
    ("--label name", |s| s.label.as_deref() == Some("name")),
];

#[test]
fn each_option_sets_its_own_field() {
    for (line, check) in LINES {
        let (settings, warnings) = run(line);
        assert!(check(&settings), "{line}: {settings:#?}");
        assert_eq!(warnings, "", "{line}");
    }
}

/// Options whose values are files have tests of their own.
const WITH_FILES: &[&str] = &[
    "request-intervals",
    "ssl-grpc-root-certifications-file",
    "ssl-grpc-private-key-file",
    "ssl-grpc-certificate-chain-file",
    "ssl-https-ca-certificates-file",
    "ssl-https-client-certificate-file",
    "ssl-https-private-key-file",
    "compare",
];

#[test]
fn no_option_is_untested() {
    let words = || LINES.iter().flat_map(|(line, _)| line.split_whitespace());
    for row in rows::<GivenOptions>().filter(|row| does_something(row)) {
        let long = format!("--{}", row.names.long);
        let short = row.names.short.map(|short| format!("-{short}"));
        let is_there = words().any(|word| word == long || Some(word) == short.as_deref());
        assert!(is_there || WITH_FILES.contains(&row.names.long), "{}", row.names.label());
    }
}

#[test]
fn options_for_other_services_have_no_effect() {
    let plain = format!("{:?}", settings(""));
    for line in [
        "--model-signature-name a",
        "--endpoint v1/chat/completions",
        "--triton-server-directory /opt/tritonserver",
        "--model-repository /models",
        "--grpc-method a.b/c",
        "--service-kind triton",
        "--input-data random",
        "-c 5",
    ] {
        assert_eq!(format!("{:?}", settings(line)), plain, "{line}");
    }
}

fn does_something(row: &OptionRow<GivenOptions>) -> bool {
    row.support == Support::Works && !["help", "version"].contains(&row.names.long)
}
