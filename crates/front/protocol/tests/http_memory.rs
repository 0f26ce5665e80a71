//! What hostile HTTP bodies take in memory, against their own size: an allocator counts.

// The lint knows #[test] functions only; this is what they are made of.
#![allow(clippy::expect_used)]

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_engine::RegionTable;
use galatea_protocol::http::{decode, decode_generate, decode_load};
use galatea_types::Result;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BODY_SIZE: usize = 5 << 20;

/// Of a body, itself included: what it says takes three times its text at most ...
const MAX_GROWTH: f64 = 4.1;
/// ... but for numbers of eight bytes that are written as a digit and a comma.
const MAX_GROWTH_OF_DIGITS: f64 = 5.1;
/// It is read and nothing is kept.
const NOTHING: f64 = 1.1;

fn config() -> ModelConfig {
    testing::model_config(
        "backend: 'identity'
         input { name: 'A' data_type: TYPE_INT64 dims: -1 }
         input { name: 'S' data_type: TYPE_STRING dims: -1 }
         output { name: 'B' data_type: TYPE_INT64 dims: -1 }",
    )
}

/// `begin`, as many times `unit` as make a long body, `end`.
fn body(begin: &str, unit: &str, end: &str) -> Vec<u8> {
    let count = (BODY_SIZE - begin.len() - end.len()) / unit.len();
    [begin, &unit.repeat(count), end].concat().into_bytes()
}

/// An input whose data are as many `element`s as make a long body, with a shape that says so.
fn elements(name: &str, data_type: &str, element: &str) -> Vec<u8> {
    let unit = format!(",{element}");
    let count = (BODY_SIZE - 100) / unit.len();
    let begin = format!(
        r#"{{"inputs":[{{"name":"{name}","datatype":"{data_type}","shape":[{}],"data":[{element}"#,
        count + 1
    );
    [&begin, &unit.repeat(count)[..], "]}]}"].concat().into_bytes()
}

/// Peak memory of reading the body, itself included, as a multiple of its size.
fn growth<T>(body: Vec<u8>, read: impl FnOnce(Bytes) -> Result<T>) -> (f64, Result<T>) {
    let size = body.len();
    let body = Bytes::from(body.into_boxed_slice());
    let before = ALLOCATOR.current_usage() - size;
    ALLOCATOR.reset_peak_usage();
    let outcome = read(body);
    ((ALLOCATOR.peak_usage() - before) as f64 / size as f64, outcome)
}

fn infer(body: Vec<u8>) -> (f64, Result<()>) {
    let config = config();
    growth(body, |body| decode(&body, body.len(), &config, None, &RegionTable::default()).map(drop))
}

#[track_caller]
fn check(what: &str, body: Vec<u8>, is_taken: bool, most: f64) {
    let (growth, outcome) = infer(body);
    println!("{what}: {growth:.2}");
    assert!(growth <= most, "{what}: {growth:.2}");
    assert_eq!(outcome.is_ok(), is_taken, "{what}: {:?}", outcome.err());
}

#[test]
fn oversized_json_lists_are_refused_before_allocation() {
    let claim = r#"{"name":"S","datatype":"BYTES","shape":[60000000],"data":["a"]},"#;
    let unknown = r#"{"name":"X","datatype":"INT64","shape":[4],"data":[1,1,1,1]},"#;
    let input = r#"{"inputs":[{"name":"A","datatype":"INT64","data":[1],"shape":["#;
    for (what, begin, unit, end) in [
        ("empty lists", r#"{"inputs":["#, "[],", "{}]}"),
        ("claims of strings", r#"{"inputs":["#, claim, "{}]}"),
        ("unknown inputs", r#"{"inputs":["#, unknown, "{}]}"),
        ("outputs", r#"{"inputs":[],"outputs":["#, r#"{"name":"B"},"#, "{}]}"),
        ("dimensions", input, "1,", "1]}]}"),
        ("parameters", r#"{"inputs":[],"parameters":{"#, r#""":1,"#, r#""":1}}"#),
        ("a long name", r#"{"inputs":[{"name":""#, "\\u0001", r#""}]}"#),
        ("a long id", r#"{"id":""#, "a", r#"","inputs":[]}"#),
    ] {
        check(what, body(begin, unit, end), false, MAX_GROWTH);
    }
}

#[test]
fn a_json_body_takes_a_small_multiple_of_its_bytes() {
    for (name, data_type, element, most) in [
        ("S", "BYTES", r#""""#, MAX_GROWTH),
        ("S", "BYTES", r#""some text""#, MAX_GROWTH),
        ("S", "BYTES", r#""\n\n\n""#, MAX_GROWTH),
        ("A", "BOOL", "true", MAX_GROWTH),
        ("A", "INT32", "1", MAX_GROWTH),
        ("A", "INT64", "100", MAX_GROWTH),
        ("A", "INT64", "1", MAX_GROWTH_OF_DIGITS),
        ("A", "FP64", "1", MAX_GROWTH_OF_DIGITS),
        ("X", "FP64", "1", NOTHING),
        ("X", "BYTES", r#""""#, NOTHING),
    ] {
        check(&format!("{data_type} {element}"), elements(name, data_type, element), true, most);
    }
    let one_long = elements("S", "BYTES", &format!(r#""\n{}""#, "a".repeat(BODY_SIZE / 2 - 200)));
    check("a long string with an escape", one_long, true, MAX_GROWTH);
}

#[test]
fn a_shape_allocates_no_more_than_its_text_can_fill() {
    for data_type in ["BYTES", "FP64"] {
        let json = format!(
            r#"{{"inputs":[{{"name":"A","datatype":"{data_type}","shape":[{}],"data":[]}}]}}"#,
            1u64 << 40
        );
        let (growth, _) = infer([json.into_bytes(), vec![b' '; 1 << 20]].concat());
        assert!(growth < MAX_GROWTH_OF_DIGITS, "{data_type}: {growth:.2}");
    }
}

#[test]
fn a_generate_body_takes_a_small_multiple_of_its_bytes() {
    let config = config();
    let keys: String = (0..500_000).map(|n| format!(r#""{n:x}":1,"#)).collect();
    for (what, body) in [
        ("keys", format!(r#"{{{keys}"id":"r"}}"#).into_bytes()),
        ("strings", body(r#"{"S":["#, r#""","#, r#"""]}"#)),
        ("numbers", body(r#"{"A":["#, "100,", "1]}")),
    ] {
        let (growth, _) = growth(body, |body| decode_generate(&body, &config, None));
        println!("{what}: {growth:.2}");
        assert!(growth <= MAX_GROWTH, "{what}: {growth:.2}");
    }
}

#[test]
fn a_load_body_takes_a_small_multiple_of_its_bytes() {
    let files: String = (0..300_000).map(|n| format!(r#""file:{n:x}":"","#)).collect();
    for (what, body) in [
        ("files", format!(r#"{{"parameters":{{{files}"config":""}}}}"#).into_bytes()),
        ("a config", body(r#"{"parameters":{"config":""#, "\\n", r#""}}"#)),
        ("a file", body(r#"{"parameters":{"file:1/m":""#, "AAAA", r#""}}"#)),
    ] {
        let (growth, _) = growth(body, |body| decode_load(&body));
        println!("{what}: {growth:.2}");
        assert!(growth <= MAX_GROWTH, "{what}: {growth:.2}");
    }
}
