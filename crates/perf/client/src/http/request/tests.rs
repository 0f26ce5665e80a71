//! Requests as bytes.

use super::*;
use crate::{Compression, Endpoint, OutputTensor, Protocol, SequenceMark};
use galatea_types::DataType;

fn target() -> Target {
    Target {
        protocol: Protocol::Http,
        endpoint: Endpoint::Tcp { host: "::1".into(), port: 8000 },
        base_path: "/base".into(),
        headers: vec![("X-Key".into(), "v".into())],
        tls: None,
        compression: Compression::None,
    }
}

fn template(format: TensorFormat, data: InputData) -> InferTemplate {
    InferTemplate {
        model: "m x".into(),
        version: "2".into(),
        inputs: vec![InputTensor {
            name: "A".into(),
            data_type: DataType::Int16,
            shape: vec![1, 2],
            data,
        }],
        outputs: vec![RequestedOutput { name: "B".into(), region: None, classes: 0 }],
        parameters: Vec::new(),
        input_format: format,
        output_format: format,
    }
}

fn inline() -> InputData {
    InputData::Inline(Bytes::from_static(b"\x01\0\xff\xff"))
}

/// The request as it travels.
fn sent(template: &InferTemplate, mark: InferMark) -> String {
    let request = HttpInfer::new(&target(), template, None).unwrap();
    let mut bytes = request.front(mark, &mut Vec::new()).to_vec();
    request.tail().for_each(|part| bytes.extend_from_slice(part));
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn mark() -> InferMark {
    InferMark { id: Some(5), sequence: Some(SequenceMark { id: 7, start: true, end: false }) }
}

const HEAD: &str = "POST /base/v2/models/m%20x/versions/2/infer HTTP/1.1\r\nHost: [::1]:8000\r\n\
    Accept: */*\r\nX-Key: v\r\n";

#[test]
fn binary_tensors_follow_the_json() {
    let json = r#"{"inputs":[{"name":"A","shape":[1,2],"datatype":"INT16","parameters":{"binary_data_size":4}}],"outputs":[{"name":"B","parameters":{"binary_data":true}}]}"#;
    let (length, total) = (json.len(), json.len() + 4);
    assert_eq!(
        sent(&template(TensorFormat::Binary, inline()), InferMark::default()),
        format!(
            "{HEAD}Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {length}\r\n\
             Content-Length: {total}\r\n\r\n{json}\x01\0\u{ff}\u{ff}"
        )
    );
}

#[test]
fn json_tensors_are_in_the_json() {
    let mut template = template(TensorFormat::Json, inline());
    template.parameters = vec![
        ("a".into(), ParameterValue::Int(-1)),
        ("b\"".into(), ParameterValue::String("\n".into())),
        ("c".into(), ParameterValue::Bool(true)),
        ("d".into(), ParameterValue::Double(1.0)),
        ("e".into(), ParameterValue::Uint(u64::MAX)),
    ];
    let json = r#"{"id":"5","parameters":{"sequence_id":7,"sequence_start":true,"sequence_end":false,"a":-1,"b\"":"\n","c":true,"d":1.0,"e":18446744073709551615},"inputs":[{"name":"A","shape":[1,2],"datatype":"INT16","data":[1,-1]}],"outputs":[{"name":"B","parameters":{"binary_data":false}}]}"#;
    let length = json.len();
    assert_eq!(
        sent(&template, mark()),
        format!("{HEAD}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}")
    );
}

#[test]
fn regions_replace_data() {
    let slice = |offset| RegionSlice { region: "r".into(), offset, byte_size: 4 };
    let mut template = template(TensorFormat::Binary, InputData::Region(slice(0)));
    template.outputs =
        vec![RequestedOutput { name: "B".into(), region: Some(slice(8)), classes: 0 }];
    let text = sent(&template, InferMark { id: Some(0), sequence: None });
    let json = r#"{"id":"0","inputs":[{"name":"A","shape":[1,2],"datatype":"INT16","parameters":{"shared_memory_region":"r","shared_memory_byte_size":4}}],"outputs":[{"name":"B","parameters":{"shared_memory_region":"r","shared_memory_byte_size":4,"shared_memory_offset":8}}]}"#;
    assert!(text.ends_with(&format!("\r\n\r\n{json}")), "{text}");
}

#[test]
fn without_listed_outputs_all_are_requested() {
    let mut template = template(TensorFormat::Binary, inline());
    template.outputs.clear();
    let text = sent(&template, InferMark::default());
    assert!(text.contains(r#"{"parameters":{"binary_data_output":true},"inputs":"#), "{text}");
    assert!(!text.contains("\"outputs\""));
    template.output_format = TensorFormat::Json;
    assert!(sent(&template, InferMark::default()).contains("\r\n\r\n{\"inputs\":"));
}

#[test]
fn large_data_is_not_copied() {
    let data = Bytes::from(vec![1; JOIN_LIMIT + 2]);
    let large = template(TensorFormat::Binary, InputData::Inline(data.clone()));
    let request = HttpInfer::new(&target(), &large, None).unwrap();
    assert!(request.tail().any(|part| part.as_ptr() == data.as_ptr()));
    let text = sent(&large, mark());
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.chars().count())), "{head}");
}

#[test]
fn header_fields_cannot_break_lines() {
    for (name, value) in [("a b", "c"), ("a", "b\r\nc: d"), ("", "x")] {
        let target = Target { headers: vec![(name.into(), value.into())], ..target() };
        let error =
            HttpInfer::new(&target, &template(TensorFormat::Binary, inline()), None).unwrap_err();
        assert!(error.message().contains("cannot be sent"), "{error}");
    }
}

#[test]
fn responses_with_binary_and_json_tensors_are_read() {
    let json = r#"{"model_name":"m","outputs":[
        {"name":"A","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}},
        {"name":"B","datatype":"BYTES","shape":[1],"data":["hi"]},
        {"name":"C","datatype":"FP32","shape":[1],"parameters":{"shared_memory_region":"r"}},
        {"name":"D","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\nInference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n",
        json.len(),
        json.len() + 3
    );
    let outputs = crate::decode_infer_response(format!("{head}{json}xyz").as_bytes()).unwrap();
    let found: Vec<(&str, &[u8])> =
        outputs.iter().map(|OutputTensor { name, data, .. }| (name.as_str(), &data[..])).collect();
    let expected: [(&str, &[u8]); 4] =
        [("A", b"xy"), ("B", b"\x02\0\0\0hi"), ("C", b""), ("D", b"z")];
    assert_eq!(found, expected);
    assert_eq!(outputs[0].shape, [2]);

    let wrong = json.replace("\"binary_data_size\":1", "\"binary_data_size\":9");
    let error = crate::decode_infer_response(format!("{head}{wrong}xyz").as_bytes()).unwrap_err();
    assert!(error.message().contains("output 'D' has 9 bytes, but 1 are left"), "{error}");
}

#[test]
fn classification_is_requested_by_an_output_parameter() {
    let mut template = template(TensorFormat::Binary, inline());
    template.outputs[0].classes = 3;
    let request = sent(&template, InferMark::default());
    assert!(request.contains(r#"{"binary_data":true,"classification":3}"#), "{request}");
}
