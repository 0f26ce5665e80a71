//! Command lines of the documents that this program is measured by, host and file names aside.

use galatea_client::Protocol;
use galatea_perf_types::settings::{
    DataSource, Distribution, Load, Range, Search, Verbosity, Window,
};

use super::{ParsedOptions, parse_words, run, settings, with_file};

#[test]
fn a_command_line_with_ensemble_and_data_file_is_accepted() {
    let line = "-m flair-ner-english-fast-ensemble --async --percentile=95 --concurrency-range 4 \
                --input-data {file} --shape sentence_bytes:70 -u HOST:8001 -i grpc \
                --measurement-interval 30000 -v";
    with_file("{}", line, |line, path| {
        let settings = settings(line);
        assert_eq!(settings.model_name, "flair-ner-english-fast-ensemble");
        assert!(settings.calls.asynchronous && !settings.calls.streaming);
        assert_eq!(settings.percentile, Some(95));
        assert_eq!(settings.load, Load::Concurrency(Range { start: 4, end: 1, step: 1 }));
        assert_eq!(settings.data.source, DataSource::Files(vec![path.to_owned()]));
        assert_eq!(settings.data.shapes["sentence_bytes"], [70]);
        assert_eq!(settings.url, "HOST:8001");
        assert_eq!(settings.protocol, Protocol::Grpc);
        assert_eq!(settings.window, Window::Time(30000));
        assert_eq!(settings.verbosity, Verbosity::Verbose);
        assert_eq!(settings.search, Search::Linear);
    });
}

/// The option given twice, values with blanks, a range and a batch.
#[test]
fn a_command_line_with_a_python_model_and_a_string_is_accepted() {
    let words = [
        "-m",
        "ner-english-fast",
        "-a",
        "--string-data",
        "He works at Google, in Zürich.",
        "--shape",
        "INPUT_0:1",
        "--percentile",
        "95",
        "--request-distribution",
        "constant",
        "--max-threads",
        "32",
        "--percentile=99",
        "--concurrency-range",
        "32:64:16",
        "-b",
        "32",
        "-u",
        "HOST:8001",
        "-i",
        "grpc",
    ];
    let (Ok(ParsedOptions::Run(settings)), warnings) = parse_words(&words) else {
        panic!("refused")
    };
    assert_eq!(warnings, "");
    assert_eq!(settings.data.string_data.as_deref(), Some("He works at Google, in Zürich."));
    assert_eq!(settings.percentile, Some(99));
    assert_eq!(settings.max_threads, Some(32));
    assert_eq!(settings.load, Load::Concurrency(Range { start: 32, end: 64, step: 16 }));
    assert_eq!(settings.batch_size, 32);
}

#[test]
fn a_command_line_with_three_inputs_over_http_is_accepted() {
    let line = "-m base_model_cpu --concurrency-range 1:4:1 --shape pixel_values:3,384,384 \
                --shape input_ids:16 --shape attention_mask:16";
    for line in [line.to_owned(), line.replace("--concurrency-range", "--concurrency_range")] {
        let settings = settings(&line);
        assert_eq!(settings.model_name, "base_model_cpu");
        assert_eq!(settings.load, Load::Concurrency(Range { start: 1, end: 4, step: 1 }));
        assert_eq!(settings.data.shapes["pixel_values"], [3, 384, 384]);
        assert_eq!(settings.data.shapes["input_ids"], [16]);
        assert_eq!(settings.data.shapes["attention_mask"], [16]);
        assert_eq!(settings.url, "localhost:8000");
        assert_eq!(settings.protocol, Protocol::Http);
    }
}

/// Model Analyzer starts the tool with this command line.
#[test]
fn the_command_line_of_model_analyzer_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("x.json");
    let line = format!(
        "-m add_sub -b 1 -u localhost:8001 -i grpc -f add_sub-results.csv --verbose-csv \
         --concurrency-range=8 --measurement-mode=count_windows --collect-metrics \
         --metrics-url=http://localhost:8002/metrics --metrics-interval=1000 --stability-percentage=10.0 \
         --profile-export-file={}",
        export.display()
    );
    let (settings, warnings) = run(&line);
    assert_eq!(warnings, "");
    assert_eq!(settings.window, Window::Count(50));
    assert_eq!(settings.csv_file.as_deref(), Some("add_sub-results.csv".as_ref()));
    assert_eq!(settings.metrics.unwrap().url, "http://localhost:8002/metrics");
    assert_eq!(settings.profile_export_file, Some(export));
}

#[test]
fn a_command_line_with_decoupled_stream_and_poisson_rate_is_accepted() {
    let line =
        "-i grpc --streaming --request-rate-range 10.5:20:2.5 --request-distribution poisson";
    let settings = settings(line);
    let range = Range { start: 10.5, end: 20.0, step: 2.5 };
    assert_eq!(settings.load, Load::RequestRate { range, distribution: Distribution::Poisson });
    assert!(settings.calls.asynchronous && settings.calls.streaming);
    assert_eq!(settings.url, "localhost:8001");
}
