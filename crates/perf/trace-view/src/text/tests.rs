//! The whole report of recorded files.

use super::*;
use crate::{report::Selection, traces::Traces};

const KINDS: &[u8] = include_bytes!("../../testdata/kinds.json");

fn report_of(bytes: &[u8], selection: Selection) -> Report {
    let mut traces = Traces::default();
    traces.add_file("t.json", bytes).expect("the bytes are in memory");
    let selection = Selection { most: 10, ..selection };
    Report::of(traces, vec!["t.json".to_owned()], selection).expect("requests")
}

fn text_of(bytes: &[u8], selection: Selection, width: usize) -> String {
    report(&report_of(bytes, selection), Terminal { has_color: false, width: Some(width) })
}

fn with_id(id: &str) -> Selection {
    Selection { id: Some(id.to_owned()), ..Selection::default() }
}

#[test]
fn an_ensemble_shows_its_steps_in_time() {
    let text = text_of(KINDS, with_id("e"), 60);
    let bars = text.split_once("Requests with this id\n").expect("bars").1;
    assert_eq!(
        bars,
        "\
‹ receive  ░ queue  ▒ input  █ compute  ▓ output  ═ steps
› send  · other

7.60 ms  chain, version 1, trace 2, request id 'e', HTTP
  chain ‹·══════════════════════════════════════·›   7.60 ms
    pre  ░▒██                                         710 µs
    net       ░░░░░░░░░░░▒██████████████████████     6.21 ms

  chain, version 1, trace 2:
       0 ns  receive start
     100 µs  receive end
     200 µs  request start
     210 µs  queue start
    7.40 ms  last response complete
    7.45 ms  send start
    7.50 ms  request end
    7.60 ms  send end

  pre, version 1, trace 3:
     300 µs  request start
     300 µs  queue start
     400 µs  compute start
     500 µs  compute input end
     900 µs  compute output start
    1.00 ms  compute end
    1.00 ms  last response complete
    1.01 ms  request end

  net, version 2, trace 4:
    1.10 ms  request start
    1.10 ms  queue start
    3.10 ms  compute start
    3.20 ms  compute input end
    7.20 ms  compute output start
    7.30 ms  compute end
    7.30 ms  last response complete
    7.31 ms  request end
"
    );
}

#[test]
fn times_of_models_have_units_and_shares() {
    let text = text_of(KINDS, Selection::default(), 80);
    let heading = "t.json: 8 requests with 3 steps or calls in 23.1 ms\n";
    assert!(text.starts_with(heading), "{text}");
    let simple = "
simple, version 1: 3 requests
                  p50       p99    share
  receive     10.0 µs    100 µs    3.7 %  █
  queue       90.0 µs   1.00 ms   36.8 %  ██████████████
  input       50.0 µs    100 µs    5.1 %  ██
  compute      200 µs    850 µs   35.5 %  █████████████
  output      50.0 µs    100 µs    5.1 %  ██
  send        20.0 µs    100 µs    4.1 %  ██
  other       70.0 µs    200 µs    9.8 %  ████
  total       1.06 ms   1.80 ms
";
    assert!(text.contains(simple), "{text}");
    assert!(text.contains("\nslow, version 1: 1 request, 1 without a response\n"), "{text}");
    assert!(text.contains("\n(no model): 1 request, 1 refused before the queue\n"), "{text}");
    let titles = text.split_once("The 8 slowest requests\n").expect("bars").1;
    let slowest = titles.lines().find(|line| line.contains(" ms  "));
    let chain = "7.60 ms  chain, version 1, trace 2, request id 'e', HTTP";
    assert_eq!(slowest.map(str::trim), Some(chain), "{text}");
    assert!(titles.contains("4.30 ms  bls, version 1, trace 5, gRPC\n"), "{text}");
    assert!(titles.contains("1.20 ms  repeat, version 1, trace 10, HTTP, 2 responses\n"), "{text}");
}

#[test]
fn every_line_fits_the_terminal() {
    for width in [40, 57, 80, 133, 200] {
        let text = text_of(KINDS, Selection::default(), width);
        for line in text.lines() {
            assert!(printing::columns(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colours_change_no_character() {
    let report_of = |has_color, width| {
        report(&report_of(KINDS, Selection::default()), Terminal { has_color, width })
    };
    let (plain, painted) = (report_of(false, Some(80)), report_of(true, Some(80)));
    assert!(painted.contains("\x1b[34m█") && !plain.contains('\x1b'));
    let mut stripped = String::new();
    for (index, part) in painted.split('\x1b').enumerate() {
        stripped.push_str(if index == 0 { part } else { part.split_once('m').expect("a code").1 });
    }
    assert_eq!(stripped, plain);
    assert!(!report_of(true, None).contains('\x1b'), "a pipe gets no colours");
}

#[test]
fn texts_of_a_file_do_not_command_the_terminal() {
    let name = "m\\u001b[2J\\u202e";
    let file = format!(
        "[{{\"id\":1,\"model_name\":\"{name}\",\"model_version\":1,\"request_id\":\"{name}\"}},\
         {{\"id\":1,\"timestamps\":[{{\"name\":\"REQUEST_START\",\"ns\":5}}]}}]"
    );
    let text = text_of(file.as_bytes(), Selection::default(), 80);
    assert!(text.contains("m\\u{1b}[2J\\u{202e}"), "{text}");
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
}

#[test]
fn numbers_are_grouped() {
    assert_eq!(counted(1, "request"), "1 request");
    assert_eq!(counted(1_234_567, "request"), "1,234,567 requests");
    assert_eq!(counted(2, "step or call"), "2 steps or calls");
    assert_eq!(counted(0, "request"), "0 requests");
}
