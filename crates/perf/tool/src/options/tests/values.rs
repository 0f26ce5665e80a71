//! Values with parts, and files.

use std::time::Duration;

use galatea_perf_types::settings::Load;
use galatea_types::ParameterValue;

use super::{error, error_of, parse_words, run, settings, with_file};
use crate::options::ParsedOptions;

#[test]
fn shapes_are_parsed() {
    let several = settings("--shape a:1 --shape ns:b:2,3 --shape a:4");
    assert_eq!(several.data.shapes["a"], [4]);
    assert_eq!(several.data.shapes["ns:b"], [2, 3]);
    for wrong in ["a", "a=1,2"] {
        let line = format!("--shape {wrong}");
        assert_eq!(
            error(&line),
            "Failed to parse --shape. There must be a colon after input name."
        );
    }
    for wrong in ["a:0", "a:-1,2,3", "a:1,0"] {
        let line = format!("--shape {wrong}");
        assert_eq!(
            error(&line),
            "Failed to parse --shape. The dimensions of input tensor must be > 0."
        );
    }
    for wrong in ["a:", "a:1,b", "a:[1,2]", "a:1,,2", ":1", "a:1.5", "a:99999999999999999999"] {
        let text = error(&format!("--shape {wrong}"));
        let start = format!("Failed to parse --shape. Invalid value provided: {wrong} (expected ");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn headers_are_parsed() {
    let (Ok(ParsedOptions::Run(settings)), _) =
        parse_words(&["-m", "x", "-H", "A: b:c ", "-H", "Empty:", "-H", "A:d"])
    else {
        panic!("refused")
    };
    let expected =
        [("Empty", ""), ("A", "d")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(settings.headers, expected);
    for wrong in ["foo", ":v", "a b:c", "a:b\nc:d", ""] {
        assert_eq!(
            error_of(&["-m", "x", "-H", wrong]),
            format!("Failed to parse -H. Invalid value provided: {wrong} (expected Header:Value)")
        );
    }
}

#[test]
fn request_parameters_are_parsed() {
    let line = "-i grpc --request-parameter a:-5:int --request-parameter b:True:Bool \
                --request-parameter c::string --request-parameter d:0:bool --request-parameter a:6:int";
    let expected = [
        ("b", ParameterValue::Bool(true)),
        ("c", ParameterValue::String(String::new())),
        ("d", ParameterValue::Bool(false)),
        ("a", ParameterValue::Int(6)),
    ];
    assert_eq!(
        settings(line).request_parameters,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
    for wrong in ["a", "a:1", "a:1:int:x"] {
        assert_eq!(
            error(&format!("-i grpc --request-parameter {wrong}")),
            "Failed to parse --request-parameter. The value does not match <name:value:type>."
        );
    }
    assert_eq!(
        error("-i grpc --request-parameter a:1:foo"),
        "Failed to parse --request-parameter. Unsupported type provided: 'foo'. The available options are \
         'bool', 'int', or 'string'."
    );
    assert_eq!(
        error("-i grpc --request-parameter a:b:int"),
        "Failed to parse --request-parameter. Invalid value provided: a:b:int (expected a whole number \
         before ':int')"
    );
    assert!(error("-i grpc --request-parameter a:b:bool").contains("expected 'true' or 'false'"));
    assert!(error("-i grpc --request-parameter :b:string").contains("expected a name"));
}

#[test]
fn composing_models_are_parsed() {
    let words =
        ["-m", "x", "--bls-composing-models", "a:1 ,  b, c:2", "--bls-composing-models=a:2"];
    let (Ok(ParsedOptions::Run(settings)), _) = parse_words(&words) else { panic!("refused") };
    let expected = [("a", "1"), ("b", ""), ("c", "2"), ("a", "2")];
    let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
    assert_eq!(settings.bls_composing_models, expected);
    for wrong in ["a,,b", ":1", "a,"] {
        assert!(
            error(&format!("--bls-composing-models {wrong}")).contains("(expected model names")
        );
    }
}

#[test]
fn intervals_are_parsed() {
    with_file("100\n\n 250 \n0\n", "--request-intervals {file}", |line, _| {
        let pauses = [100, 250, 0].map(Duration::from_micros).to_vec();
        assert_eq!(settings(line).load, Load::CustomIntervals(pauses));
    });
    for (content, expected) in [
        ("100\nabc\n", "{file}:2: expected a whole number of microseconds, got 'abc'"),
        ("1\n\n-5", "{file}:3: expected a whole number of microseconds, got '-5'"),
        ("1.5", "{file}:1: expected a whole number of microseconds, got '1.5'"),
        ("\n", "file '{file}' is empty"),
        ("", "file '{file}' is empty"),
        ("0\n0\n", "file '{file}' has no interval over 0"),
    ] {
        with_file(content, "--request-intervals {file}", |line, path| {
            let expected = expected.replace("{file}", path.to_str().unwrap());
            assert_eq!(error(line), format!("Failed to parse --request-intervals. {expected}"));
        });
    }
    for missing in ["/no/such/file", "."] {
        assert_eq!(
            error(&format!("--request-intervals {missing}")),
            "Failed to parse --request-intervals. The value must be a valid file path"
        );
    }
}

#[test]
fn id_ranges_are_parsed() {
    let ids = |line: &str| {
        let (settings, warnings) = run(&format!("--sequence-id-range {line}"));
        (settings.sequences.first_id, settings.sequences.id_count, !warnings.is_empty())
    };
    assert_eq!(ids("53"), (53, None, false));
    assert_eq!(ids("0"), (1, None, true));
    assert_eq!(ids("0:5"), (1, Some(5), true));
    for (wrong, why) in [
        ("5:3", "The 'end' value must be greater than 'start' value."),
        ("5:5", "The 'end' value must be greater than 'start' value."),
        ("-1:5", "The range values must be >= 0."),
        ("-1", "The range values must be >= 0."),
        ("1:2:3", "The value does not match <start:end>."),
    ] {
        let line = format!("--sequence-id-range {wrong}");
        assert_eq!(error(&line), format!("Failed to parse --sequence-id-range. {why}"));
    }
    for wrong in ["BAD", "53:BAD", ":", "99999999999999999999"] {
        let text = error(&format!("--sequence-id-range {wrong}"));
        let start = format!("Failed to parse --sequence-id-range. Invalid value provided: {wrong}");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn trace_levels_are_combined() {
    let levels = |line: &str| settings(line).trace.fields["trace_level"].clone();
    assert_eq!(levels("--trace-level TIMESTAMPS --trace-level TENSORS"), ["TIMESTAMPS", "TENSORS"]);
    assert_eq!(levels("--trace-level TENSORS --trace-level TENSORS"), ["TENSORS"]);
    assert_eq!(levels("--trace-level TENSORS --trace-level OFF"), ["OFF"]);
    assert_eq!(levels("--trace-level OFF --trace-level TENSORS"), ["TENSORS"]);
}

#[test]
fn metrics_are_read_from_the_servers_host() {
    for (url, expected) in [
        ("host:9", "host:8002/metrics"),
        ("host", "host:8002/metrics"),
        ("http://host:9/path:1", "host:8002/metrics"),
        ("https://host", "host:8002/metrics"),
        ("[::1]:9", "[::1]:8002/metrics"),
        ("[::1]", "[::1]:8002/metrics"),
    ] {
        let settings = settings(&format!("--collect-metrics -u {url}"));
        assert_eq!(settings.metrics.unwrap().url, expected, "{url}");
    }
}

#[test]
fn tls_options_over_https_are_parsed() {
    with_file(
        "pem",
        "-u HTTPS://h:1 --ssl-https-ca-certificates-file {file} --ssl-https-client-certificate-file {file} \
               --ssl-https-private-key-file {file} --ssl-grpc-use-ssl",
        |line, path| {
            let tls = settings(line).tls.expect("TLS");
            for file in [tls.roots, tls.certificate_chain, tls.private_key] {
                assert_eq!(file.as_deref(), Some(path));
            }
            assert!(!tls.skips_peer && !tls.skips_host);
            assert!(!tls.certificate_is_der && !tls.private_key_is_der);
        },
    );
    assert!(!settings("-u https://h --ssl-https-verify-host 1").tls.unwrap().skips_host);
    // Plain HTTP stays plain, whatever the files.
    assert!(settings("-u http://h --ssl-https-verify-peer 0 --ssl-grpc-use-ssl").tls.is_none());
}

#[test]
fn tls_options_over_grpc_are_parsed() {
    with_file(
        "pem",
        "-i grpc --ssl-grpc-root-certifications-file {file} --ssl-grpc-private-key-file {file} \
               --ssl-grpc-certificate-chain-file {file} --ssl-https-verify-peer 0",
        |line, path| {
            assert!(settings(line).tls.is_none());
            let tls = settings(&format!("{line} --ssl-grpc-use-ssl")).tls.expect("TLS");
            for file in [tls.roots, tls.certificate_chain, tls.private_key] {
                assert_eq!(file.as_deref(), Some(path));
            }
            assert!(!tls.skips_peer && !tls.skips_host);
        },
    );
}

#[test]
fn tls_files_must_exist() {
    for option in [
        "--ssl-grpc-root-certifications-file",
        "--ssl-grpc-private-key-file",
        "--ssl-grpc-certificate-chain-file",
        "--ssl-https-ca-certificates-file",
        "--ssl-https-client-certificate-file",
        "--ssl-https-private-key-file",
    ] {
        assert_eq!(
            error(&format!("{option} /no/such/file")),
            format!("Failed to parse {option}. The value must be a valid file path.")
        );
    }
}

#[test]
fn comparisons_need_the_html_option() {
    with_file("{}", "--html page --compare {file} --compare {file}", |line, path| {
        assert_eq!(settings(line).compare, [path, path]);
    });
    with_file("{}", "--compare {file}", |line, _| {
        assert_eq!(error(line), "Must specify --html when using the --compare option.");
    });
    let missing = error("--html page --compare /no/such/file");
    assert!(
        missing.starts_with("Failed to parse --compare. Cannot read '/no/such/file': "),
        "{missing}"
    );
    assert!(error("--html page --compare .").ends_with("it is a directory"));
}

#[test]
fn output_files_must_not_be_folders() {
    for option in ["-f", "--json", "--html"] {
        assert!(error(&format!("{option} .")).ends_with("The value is a directory."), "{option}");
        assert!(error_of(&["-m", "x", option, ""]).ends_with("(expected a file name)"), "{option}");
    }
    with_file("", "--profile-export-file {file}", |line, _| {
        assert_eq!(
            error(line),
            "Failed to parse --profile-export-file. Path must not already exist."
        );
    });
    assert_eq!(
        error("--profile-export-file ."),
        "Failed to parse --profile-export-file. Path must not already exist."
    );
}

#[test]
fn input_data_options_are_combined() {
    with_file("{}", "--input-data {file} --input-data . --input-data random", |line, path| {
        let source = settings(line).data.source;
        let expected = vec![path.to_owned(), ".".into()];
        assert_eq!(source, galatea_perf_types::settings::DataSource::Files(expected));
    });
    assert_eq!(
        error("--input-data /no/such/file"),
        "Failed to parse --input-data. Unsupported type provided: '/no/such/file'. The available options \
         are 'zero', 'random', path to a directory, or a json file."
    );
    assert_eq!(
        error("--data-directory /no/such/folder"),
        "Failed to parse --data-directory. There is no '/no/such/folder'."
    );
}
