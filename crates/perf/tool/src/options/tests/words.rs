//! Words into options.

use std::time::Duration;

use galatea_command_line::{Kind, rows};
use galatea_perf_types::settings::{Load, Range, Verbosity, Window};
use proptest::prelude::*;

use super::{ParsedOptions, error, error_of, parse_words, run, settings};
use crate::options::given_options::GivenOptions;

fn concurrency(start: u64) -> Load {
    Load::Concurrency(Range { start, end: 1, step: 1 })
}

#[test]
fn values_may_be_attached_or_follow_the_option() {
    for line in
        ["--concurrency-range 4", "--concurrency-range=4", "--conc 4", "--conc=4", "-t4", "-t 4"]
    {
        assert_eq!(settings(line).load, concurrency(4), "{line}");
    }
}

#[test]
fn underscores_are_equal_to_dashes() {
    assert_eq!(settings("--concurrency_range=4").load, concurrency(4));
    assert_eq!(settings("--measurement_interval 100").window, Window::Time(100));
    assert_eq!(settings("--measurement_inter 100").window, Window::Time(100));
    assert!(settings("--verbose_csv").verbose_csv);
}

#[test]
fn a_value_may_begin_with_dashes() {
    assert_eq!(settings("--string-data --async").data.string_data.as_deref(), Some("--async"));
    assert_eq!(
        error("-p -5"),
        "Failed to parse --measurement-interval (-p). The value must be > 0 msec."
    );
}

#[test]
fn the_last_of_two_equal_options_counts() {
    assert_eq!(settings("--percentile=95 --percentile=99").percentile, Some(99));
    assert_eq!(settings("--percentile 99 --percentile=-1").percentile, None);
    assert_eq!(settings("--percentile 200 --percentile=5").percentile, Some(5));
    assert_eq!(settings("-b 2 -b3").batch_size, 3);
}

#[test]
fn short_options_may_share_a_word() {
    let shared = settings("-avp100");
    assert!(shared.calls.asynchronous);
    assert_eq!(shared.verbosity, Verbosity::Verbose);
    assert_eq!(shared.window, Window::Time(100));
    assert_eq!(settings("-vv").verbosity, Verbosity::Extra);
}

#[test]
fn verbosity_has_three_levels() {
    assert_eq!(settings("").verbosity, Verbosity::Quiet);
    assert_eq!(settings("-v").verbosity, Verbosity::Verbose);
    assert_eq!(settings("-v -v").verbosity, Verbosity::Extra);
    assert_eq!(settings("-v -v -v").verbosity, Verbosity::Extra);
}

#[test]
fn other_words_are_ignored_with_a_warning() {
    let (settings, warnings) = run("here -b 2 there - -- -b 3");
    assert_eq!(settings.batch_size, 2);
    let expected: String = ["here", "there", "-", "-b", "3"]
        .map(|word| format!("WARNING: ignoring '{word}', which is not an option\n"))
        .concat();
    assert_eq!(warnings, expected);
}

#[test]
fn option_errors_equal_those_of_getopt() {
    let error = |line: &str| {
        let text = error(line);
        text.strip_prefix("perf_analyzer: ").expect("the program's name").to_owned()
    };
    assert_eq!(error("--foo"), "unrecognized option '--foo'");
    assert_eq!(error("--foo=3"), "unrecognized option '--foo=3'");
    assert_eq!(
        error("--concurency-range=3"),
        "unrecognized option '--concurency-range'; did you mean '--concurrency-range'?"
    );
    assert_eq!(error("-q"), "invalid option -- 'q'");
    assert_eq!(error("-aq"), "invalid option -- 'q'");
    assert_eq!(error("-é"), "invalid option -- 'é'");
    assert_eq!(error("-b"), "option requires an argument -- 'b'");
    assert_eq!(error("--shape"), "option '--shape' requires an argument");
    assert_eq!(
        error("--sha"),
        "option '--sha' is ambiguous; possibilities: '--shape' '--shared-memory'"
    );
    assert_eq!(error("--async=3"), "option '--async' doesn't allow an argument");
    assert!(error("--s").starts_with("option '--s' is ambiguous; possibilities: '--"));
}

/// Our own names must not break an abbreviation that works with perf_analyzer.
#[test]
fn abbreviations_accepted_by_perf_analyzer_stay_unique() {
    assert_eq!(settings("--la 5 --lo 3").latency_limit, Some(5));
    assert_eq!(settings("--js a.json").json_file.as_deref(), Some("a.json".as_ref()));
    assert!(matches!(parse_words(&["--he"]).0, Ok(ParsedOptions::Help(_))));
}

#[test]
fn use_ssl_accepts_an_optional_boolean() {
    for line in ["", " true", "=true", " 1", "=TRUE"] {
        assert!(settings(&format!("-i grpc --ssl-grpc-use-ssl{line}")).tls.is_some(), "{line}");
    }
    for line in [" false", "=false", "=0"] {
        assert!(settings(&format!("-i grpc --ssl-grpc-use-ssl{line}")).tls.is_none(), "{line}");
    }
    assert_eq!(settings("--ssl-grpc-use-ssl -b 2").batch_size, 2);
    assert_eq!(
        error("--ssl-grpc-use-ssl=maybe"),
        "Failed to parse --ssl-grpc-use-ssl. Invalid value provided: maybe (expected 'true' or 'false')"
    );
}

#[test]
fn help_and_version_come_before_missing_options() {
    for words in [&["--help"][..], &["-h"], &["-?"], &["-m", "x", "-h", "--nonsense"]] {
        let (parsed, _) = parse_words(words);
        assert!(matches!(parsed, Ok(ParsedOptions::Help(_))), "{words:?}");
    }
    let Ok(ParsedOptions::Version(version)) = parse_words(&["--version"]).0 else {
        panic!("no version")
    };
    assert_eq!(
        version,
        format!("Perf Analyzer Version 2.50.0 (galatea {})\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn an_empty_command_line_asks_for_the_model() {
    assert_eq!(error_of(&[]), "Failed to parse -m (model name). The value must be specified.");
}

#[test]
fn help_lists_every_option_within_the_line_width() {
    let Ok(ParsedOptions::Help(help)) = parse_words(&["-h"]).0 else { panic!("no help") };
    assert!(help.starts_with("Usage: perf_analyzer -m <model> [options]\n"), "{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(line.trim_end(), line);
    }
    for row in rows::<GivenOptions>() {
        let name = match (row.names.short, row.names.long) {
            (Some(short), "") => format!("  -{short}"),
            (Some(short), long) => format!("  -{short}, --{long}"),
            (None, long) => format!("  --{long}"),
        };
        let is_there = |line: &str| line == name || line.starts_with(&format!("{name} "));
        assert!(help.lines().any(is_there), "{name}");
        assert!(row.help.ends_with('.'), "{name}");
    }
}

#[test]
fn option_names_are_unique() {
    let mut names: Vec<String> = rows::<GivenOptions>()
        .flat_map(|row| {
            row.names.short.map(String::from).into_iter().chain([row.names.long.to_owned()])
        })
        .filter(|name| !name.is_empty())
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Every option of perf_analyzer 2.50's parser, and the newer ones of the end of 2025.
#[test]
fn every_option_of_perf_analyzer_is_known() {
    const WITH_VALUE: &str = "max-threads sequence-length percentile data-directory shape \
        measurement-interval concurrency-range latency-threshold stability-percentage max-trials \
        input-data string-length string-data request-rate-range num-of-sequences request-distribution \
        request-intervals shared-memory output-shared-memory-size service-kind model-signature-name \
        grpc-compression-algorithm measurement-mode measurement-request-count triton-server-directory \
        model-repository sequence-id-range ssl-grpc-root-certifications-file ssl-grpc-private-key-file \
        ssl-grpc-certificate-chain-file ssl-https-verify-peer ssl-https-verify-host \
        ssl-https-ca-certificates-file ssl-https-client-certificate-file \
        ssl-https-client-certificate-type ssl-https-private-key-file ssl-https-private-key-type \
        trace-level trace-rate trace-count log-frequency metrics-url metrics-interval \
        sequence-length-variation bls-composing-models input-tensor-format output-tensor-format \
        profile-export-file periodic-concurrency-range request-period request-parameter endpoint \
        request-count warmup-request-count session-concurrency grpc-method";
    const WITHOUT: &str = "streaming async sync binary-search verbose-csv enable-mpi collect-metrics \
        serial-sequences version fixed-schedule ssl-grpc-use-ssl";
    let takes =
        |name: &str| rows::<GivenOptions>().find(|row| row.names.long == name).map(|row| row.kind);
    for name in WITH_VALUE.split_whitespace() {
        assert!(matches!(takes(name), Some(Kind::Form(_))), "{name}");
    }
    for name in WITHOUT.split_whitespace() {
        assert!(matches!(takes(name), Some(Kind::Switch | Kind::OptionalBool)), "{name}");
    }
    for (short, has_value) in
        "vdaz".chars().map(|c| (c, false)).chain("cumxbtpiHlrsf".chars().map(|c| (c, true)))
    {
        let row = rows::<GivenOptions>()
            .find(|row| row.names.short == Some(short))
            .expect("a short option");
        assert_eq!(matches!(row.kind, Kind::Form(_)), has_value, "{short}");
    }
}

#[test]
fn metrics_interval_is_in_milliseconds() {
    let metrics = settings("--collect-metrics --metrics-interval 250").metrics.expect("metrics");
    assert_eq!(metrics.interval, Duration::from_millis(250));
}

/// Words that get deep into the parser: names of options, with values that are nearly right.
fn word() -> impl Strategy<Value = String> {
    let names: Vec<String> = rows::<GivenOptions>()
        .flat_map(|row| {
            let short = row.names.short.map(|short| format!("-{short}"));
            short.into_iter().chain([format!("--{}", row.names.long)])
        })
        .collect();
    let value = prop_oneof![
        "[0-9:.,-]{0,8}",
        "[a-z]{1,4}:[0-9,-]{0,6}(:(int|bool|string))?",
        Just("18446744073709551616".to_owned()),
        Just("-9223372036854775809".to_owned()),
        Just("1e308:1e-308:nan".to_owned()),
        "\\PC{0,12}",
    ];
    let name = prop::sample::select(names);
    prop_oneof![
        name.clone(),
        value.clone(),
        (name.clone(), value.clone()).prop_map(|(name, value)| format!("{name}={value}")),
        (name, value).prop_map(|(name, value)| format!("{name}{value}")),
        "\\PC{0,6}",
    ]
}

proptest! {
    /// Any input is accepted or refused with a message.
    #[test]
    fn arbitrary_words_cause_no_panic(words in prop::collection::vec(word(), 0..8)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for prefix in [&[][..], &["-m", "x"]] {
            let line: Vec<&str> = prefix.iter().chain(&words).copied().collect();
            if let Err(failure) = parse_words(&line).0 {
                prop_assert!(failure.message.contains("--help"));
            }
        }
    }

    /// Numbers are taken whole or refused, never cut or wrapped.
    #[test]
    fn numbers_are_parsed_as_a_whole(number in any::<i128>(), tail in "[a-z. ]{0,2}") {
        let text = format!("{number}{tail}");
        let (parsed, _) = parse_words(&["-m", "x", "--request-count", &text]);
        let expected = text.trim().parse::<u64>().ok();
        match parsed {
            Ok(ParsedOptions::Run(settings)) => prop_assert_eq!(settings.request_count.unwrap_or(0), expected.unwrap()),
            _ => prop_assert_eq!(expected, None),
        }
    }
}
