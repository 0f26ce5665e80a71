//! What numbers cost in JSON: `cargo run --release -p galatea-protocol --example json_numbers [KIND...]`.
//!
//! For each kind of tensor a request with 100,000 elements is decoded and the same tensor written as a response. Printed
//! are nanoseconds per element and bytes of text per element, the best of many rounds. With kinds only those whose name
//! has one of these words; `--rounds=1` is for callgrind, which counts the same in every round.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot go on may panic")]

use galatea_engine::RegionTable;
use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use bytes::Bytes;
use galatea_config::testing;
use galatea_protocol::http::{decode, encode};
use galatea_types::{DataType, InferResponse, Tensor};

const ELEMENTS: u64 = 100_000;
const ROUNDS: usize = 60;

/// A name, a type, and the text of the element of that number.
type Kind = (&'static str, DataType, fn(u64) -> String);

const KINDS: [Kind; 18] = [
    ("FP32 of 6 decimals", DataType::Fp32, |n| format!("{:.6}", unit(n))),
    ("FP32 of 10 decimals", DataType::Fp32, |n| format!("{:.10}", normal(n))),
    ("FP32 shortest", DataType::Fp32, |n| text(normal(n) as f32)),
    ("FP32 of 17 digits", DataType::Fp32, |n| text(f64::from(normal(n) as f32))),
    ("FP32 exponents", DataType::Fp32, |n| format!("{:e}", any_float(n))),
    ("FP32 integers", DataType::Fp32, |n| (mix(n) % 256).to_string()),
    ("FP32 zeros", DataType::Fp32, |_| "0.0".to_owned()),
    ("FP64 of 2 decimals", DataType::Fp64, |n| format!("{:.2}", 100.0 * normal(n))),
    ("FP64 shortest", DataType::Fp64, |n| text(normal(n))),
    ("UINT8", DataType::Uint8, |n| (mix(n) as u8).to_string()),
    ("INT8", DataType::Int8, |n| (mix(n) as i8).to_string()),
    ("INT16", DataType::Int16, |n| (mix(n) as i16).to_string()),
    ("INT32", DataType::Int32, |n| (mix(n) as i32).to_string()),
    ("INT64 token ids", DataType::Int64, |n| (mix(n) % 32_000).to_string()),
    ("INT64", DataType::Int64, |n| (mix(n) as i64).to_string()),
    ("UINT64", DataType::Uint64, |n| mix(n).to_string()),
    ("BOOL", DataType::Bool, |n| (mix(n) > u64::MAX / 2).to_string()),
    ("BYTES of 5", DataType::Bytes, |n| format!("\"{:05}\"", mix(n) % 100_000)),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|a| a.strip_prefix("--rounds="));
    let rounds = rounds.map_or(ROUNDS, |n| n.parse().expect("a number of rounds"));
    let words: Vec<_> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    println!(
        "| 100,000 elements | bytes in | ns to read | bytes out | ns to write |\n|---|---|---|---|---|"
    );
    for (name, data_type, element) in KINDS {
        if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
            measure(name, data_type, element, rounds);
        }
    }
}

fn measure(name: &str, data_type: DataType, element: fn(u64) -> String, rounds: usize) {
    let tensors = testing::tensors("input", ["IN"], data_type, &[-1])
        + &testing::tensors("output", ["OUT"], data_type, &[-1]);
    let model = testing::model_config(&format!("backend: 'identity'\n{tensors}"));
    let elements: Vec<String> = (0..ELEMENTS).map(element).collect();
    let body = Bytes::from(format!(
        r#"{{"inputs": [{{"name": "IN", "shape": [{ELEMENTS}], "datatype": "{}", "data": [{}]}}]}}"#,
        data_type.protocol_name(),
        elements.join(", ")
    ));
    let (mut read, mut written) = (Duration::MAX, Duration::MAX);
    let mut length = 0;
    for _ in 0..rounds {
        let started = Instant::now();
        let (request, plan) =
            decode(&body, body.len(), &model, None, &RegionTable::default()).expect("a request");
        read = read.min(started.elapsed());
        let response = response_with(request.inputs);
        let started = Instant::now();
        let encoded = encode(response, &plan, |_, _| None).expect("a response");
        written = written.min(started.elapsed());
        length = encoded.json.len();
    }
    let per_element = |time: Duration| time.as_nanos() as f64 / ELEMENTS as f64;
    let (size, length) = (body.len() as f64 / ELEMENTS as f64, length as f64 / ELEMENTS as f64);
    let (read, written) = (per_element(read), per_element(written));
    println!("| {name} | {size:.1} | {read:.1} | {length:.1} | {written:.1} |");
}

fn response_with(outputs: Vec<Tensor>) -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs,
    }
}

/// A number with a point.
fn text(value: impl Debug) -> String {
    format!("{value:?}")
}

/// Bits without a pattern, the same in every run (SplitMix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// From 0 to 1.
fn unit(n: u64) -> f64 {
    mix(n) as f64 / u64::MAX as f64
}

/// About as numbers of a normal distribution are: the sum of twelve.
fn normal(n: u64) -> f64 {
    (12 * n..12 * n + 12).map(unit).sum::<f64>() - 6.0
}

/// Of any size.
fn any_float(n: u64) -> f32 {
    let value = f32::from_bits(mix(n) as u32);
    if value.is_finite() { value } else { 0.0 }
}
