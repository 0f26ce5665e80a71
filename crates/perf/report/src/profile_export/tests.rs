//! Profile exports, against files of perf_analyzer.

use std::sync::Arc;

use bytes::Bytes;
use galatea_client::{InferTemplate, InputTensor, RegionSlice, TensorFormat};
use galatea_perf_types::{record::ExportedRequest, requests::ExpectedOutput};
use galatea_types::DataType;
use serde_json::{Value, json};
use smallvec::smallvec;

use super::*;

/// One stream whose steps hold the step's number.
struct Numbers;

impl RequestSource for Numbers {
    fn stream_count(&self) -> usize {
        1
    }

    fn step_count(&self, _stream: usize) -> usize {
        2
    }

    fn template(&self, _stream: usize, step: usize) -> Arc<InferTemplate> {
        let number = i32::try_from(step).unwrap();
        let tensor = |name: &str, values: &[i32]| InputTensor {
            name: name.to_owned(),
            data_type: DataType::Int32,
            shape: vec![i64::try_from(values.len()).unwrap()],
            data: InputData::Inline(little_endian(values)),
        };
        let region = RegionSlice { region: "r".to_owned(), offset: 0, byte_size: 4 };
        let shared = InputTensor {
            name: "SHARED".to_owned(),
            data_type: DataType::Fp32,
            shape: vec![1],
            data: InputData::Region(region),
        };
        Arc::new(InferTemplate {
            model: "m".to_owned(),
            version: String::new(),
            inputs: vec![tensor("IN", &[1, 2, number]), tensor("WAIT", &[number]), shared],
            outputs: Vec::new(),
            parameters: Vec::new(),
            input_format: TensorFormat::Binary,
            output_format: TensorFormat::Binary,
        })
    }

    fn expected(&self, _stream: usize, _step: usize) -> Option<&[ExpectedOutput]> {
        None
    }

    fn is_user_data(&self) -> bool {
        true
    }
}

fn little_endian(values: &[i32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn output(name: &str, data_type: DataType, data: impl Into<Bytes>) -> OutputTensor {
    OutputTensor { name: name.to_owned(), data_type, shape: vec![1], data: data.into() }
}

fn request(start: Nanos, sequence_id: u64, step: usize) -> RequestRecord {
    let response = |value| vec![output("OUT", DataType::Int32, little_endian(&[value]))];
    RequestRecord {
        start,
        sequence_id,
        responses: smallvec![start + 10, start + 20, start + 30],
        last_response_is_empty: true,
        exported: Some(Box::new(ExportedRequest {
            stream: 0,
            step,
            outputs: vec![response(1), response(2), Vec::new()],
        })),
        ..RequestRecord::default()
    }
}

fn written(write: impl FnOnce(&mut ProfileExport<'_, Vec<u8>>) -> io::Result<()>) -> String {
    let mut export = ProfileExport::new(Vec::new(), &Numbers).unwrap();
    write(&mut export).unwrap();
    String::from_utf8(export.finish().unwrap()).unwrap()
}

#[test]
fn a_decoupled_export_equals_perf_analyzers_bytes() {
    let text = written(|export| {
        let requests = [request(1_795_283_249_192_483_310, 0, 0)];
        export.experiment(LoadPoint::Concurrency(1), &requests, &[100, 200])
    });
    assert_eq!(
        text,
        concat!(
            r#"{"experiments":[{"experiment":{"mode":"concurrency","value":1},"requests":["#,
            r#"{"timestamp":1795283249192483310,"request_inputs":{"IN":[1,2,0],"WAIT":0,"SHARED":""},"#,
            r#""response_timestamps":[1795283249192483320,1795283249192483330,1795283249192483340],"#,
            r#""response_outputs":[{"OUT":1},{"OUT":2},{}]}],"window_boundaries":[100,200]}],"#,
            r#""version":"","service_kind":"triton","endpoint":""}"#
        )
    );
}

#[test]
fn a_sequence_export_has_perf_analyzers_keys_in_order() {
    // The beginning and the end of a real file, values shortened.
    let real = r#"{"experiments":[{"experiment":{"mode":"request_rate","value":50.5},"requests":[{"timestamp":1,"sequence_id":1,"request_inputs":{"IN":[1,2,1],"WAIT":1,"SHARED":""},"response_timestamps":[11,21,31],"response_outputs":[{"OUT":1},{"OUT":2},{}]}],"window_boundaries":[5,6,7]}],"version":"","service_kind":"triton","endpoint":""}"#;
    let text = written(|export| {
        export.experiment(LoadPoint::RequestRate(50.5), &[request(1, 1, 1)], &[5, 6, 7])
    });
    assert_eq!(text, real);
}

#[test]
fn experiments_and_requests_are_separated() {
    let text = written(|export| {
        let requests = [request(1, 0, 0), request(2, 0, 1), request(3, 0, 0)];
        export.experiment(LoadPoint::Concurrency(1), &requests, &[])?;
        export.experiment(LoadPoint::RequestRate(66.0), &[], &[0, u64::MAX])
    });
    let document: Value = serde_json::from_str(&text).unwrap();
    let inputs = |index: usize| &document["experiments"][0]["requests"][index]["request_inputs"];
    assert_eq!(inputs(1)["WAIT"], json!(1));
    assert_eq!(inputs(2)["WAIT"], json!(0));
    assert_eq!(
        document["experiments"][1],
        json!({"experiment": {"mode": "request_rate", "value": 66.0}, "requests": [],
               "window_boundaries": [0, u64::MAX]})
    );
}

#[test]
fn requests_without_kept_tensors_export_none() {
    let bare = RequestRecord { start: 7, responses: smallvec![9], ..RequestRecord::default() };
    let text = written(|export| export.experiment(LoadPoint::Concurrency(2), [&bare], &[]));
    let expected =
        r#"{"timestamp":7,"request_inputs":{},"response_timestamps":[9],"response_outputs":[]}"#;
    assert!(text.contains(expected), "{text}");
}

#[test]
fn tensors_of_every_type_become_json() {
    let strings =
        [&[3, 0, 0, 0, b'a', b'"', 0xff][..], &[0, 0, 0, 0], &[9, 0, 0, 0, b'x']].concat();
    for (data_type, data, expected) in [
        (DataType::Bool, vec![1, 0, 7], "[true,false,true]"),
        (DataType::Uint8, vec![103, 198], "[103,198]"),
        (DataType::Int8, vec![103, 198], "[103,-58]"),
        (DataType::Uint16, vec![1, 1], "257"),
        (DataType::Int64, (-5i64).to_le_bytes().to_vec(), "-5"),
        (DataType::Uint64, u64::MAX.to_le_bytes().to_vec(), "18446744073709551615"),
        (DataType::Fp32, f32::NAN.to_le_bytes().to_vec(), "null"),
        (DataType::Fp16, f16_bytes(1.5), "1.5"),
        (DataType::Bf16, half::bf16::from_f32(-2.0).to_le_bytes().to_vec(), "-2.0"),
        (DataType::Bytes, vec![2, 0, 0, 0, b'h', b'i'], "\"hi\""),
        (DataType::Bytes, strings, "[\"a\\\"\u{fffd}\",\"\"]"),
        (DataType::Int32, Vec::new(), "\"\""),
    ] {
        assert_eq!(tensor::value(data_type, &data), expected, "{data_type:?}");
    }
}

#[test]
fn floats_are_written_like_perf_analyzers() {
    let single = 1.852_156_4e31_f32;
    let double: f64 = "3.2426172339303899e33".parse().unwrap();
    for (data_type, data, real) in [
        (DataType::Fp32, single.to_le_bytes().to_vec(), "1.8521564417127638e31"),
        (DataType::Fp64, double.to_le_bytes().to_vec(), "3.2426172339303899e33"),
    ] {
        let ours: f64 = tensor::value(data_type, &data).parse().unwrap();
        assert_eq!(ours, real.parse::<f64>().unwrap());
    }
}

fn f16_bytes(value: f32) -> Vec<u8> {
    half::f16::from_f32(value).to_le_bytes().to_vec()
}

/// Names of all members, lists by their first element, in the order of the text.
fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let under = keys(value).into_iter().map(move |key| format!("{name}.{key}"));
                std::iter::once(name.clone()).chain(under)
            })
            .collect(),
        Value::Array(values) => values.first().map(keys).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[test]
fn exports_have_the_keys_of_real_files() {
    for (real, sequence_id) in [
        (include_str!("../../testdata/decoupled.json"), 0),
        (include_str!("../../testdata/sequence.json"), 1),
    ] {
        let text = written(|export| {
            export.experiment(LoadPoint::Concurrency(1), &[request(1, sequence_id, 0)], &[1, 2])
        });
        let without_tensors = |text: &str| {
            let mut document: Value = serde_json::from_str(text).unwrap();
            let request = &mut document["experiments"][0]["requests"][0];
            request["request_inputs"] = json!({});
            request["response_outputs"] = json!([{}]);
            keys(&document)
        };
        assert_eq!(without_tensors(&text), without_tensors(real));
    }
}
