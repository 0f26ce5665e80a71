//! Responses as lines of JSON.

use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_types::{
    Code, DataType, Error, InferRequest, InferResponse, ParameterValue, Result, Shape, Tensor,
};

use super::{model, spec};
use crate::{
    AnswerPlan,
    http::{decode, decode_for_lines, error_line, response_line},
};

const INPUT: &str = r#""inputs":[{"name":"IN","shape":[1],"datatype":"UINT8","data":[7]}]"#;

fn decoded(rest: &str) -> Result<(InferRequest, AnswerPlan)> {
    let json = format!("{{{INPUT}{rest}}}");
    let model = model(0, vec![spec("IN", DataType::Uint8, &[1])]);
    decode_for_lines(
        &Bytes::from(json.clone().into_bytes()),
        json.len(),
        &model,
        None,
        &RegionTable::default(),
    )
    .and_then(|(request, plan)| Ok((request.read()?, plan)))
}

fn response() -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: "q".into(),
        parameters: vec![("p".into(), ParameterValue::Int(1))],
        outputs: vec![Tensor::new("OUT", DataType::Uint8, Shape::from([1]), vec![7])],
    }
}

#[test]
fn every_line_has_a_final_marker() {
    let (_, plan) = decoded("").expect("a request");
    let line = response_line(response(), true, &plan, |_, _| None).expect("has a JSON form");
    let expected = r#"{"id":"q","model_name":"m","model_version":"1","parameters":{"p":1,"triton_final_response":true},"outputs":[{"name":"OUT","datatype":"UINT8","shape":[1],"data":[7]}]}"#;
    assert_eq!(String::from_utf8_lossy(&line), format!("{expected}\n"));
    let line = response_line(response(), false, &plan, |_, _| None).expect("has a JSON form");
    assert!(String::from_utf8_lossy(&line).contains(r#""triton_final_response":false}"#));
    let error = error_line(&Error::internal("two\nlines"));
    assert_eq!(error, b"{\"error\":\"two\\nlines\"}\n");
}

#[test]
fn binary_outputs_are_refused() {
    for rest in [
        r#","parameters":{"binary_data_output":true}"#,
        r#","outputs":[{"name":"OUT","parameters":{"binary_data":true}}]"#,
    ] {
        let error = decoded(rest).expect_err("no place for bytes");
        assert_eq!(error.code(), Code::InvalidArg);
        assert!(error.message().starts_with("binary outputs cannot be part of"), "{error}");
    }
    decoded(r#","parameters":{"binary_data_output":false}"#).expect("JSON");
}

#[test]
fn raw_binary_requests_are_answered_in_json() {
    let model = model(0, vec![spec("IN", DataType::Uint8, &[1])]);
    let (request, plan) =
        decode_for_lines(&Bytes::from(vec![7]), 0, &model, None, &RegionTable::default())
            .expect("a request");
    assert_eq!(request.request().inputs[0].host().expect("host memory")[..], [7]);
    let line = response_line(response(), true, &plan, |_, _| None).expect("has a JSON form");
    assert!(String::from_utf8_lossy(&line).contains(r#""data":[7]"#));
}

#[test]
fn an_empty_final_response_is_sent_on_request_and_only_as_json_lines() {
    let rest = r#","parameters":{"triton_enable_empty_final_response":true}"#;
    let (request, plan) = decoded(rest).expect("a request");
    assert!(plan.wants_empty_final() && request.parameters.is_empty());
    assert!(!decoded("").expect("a request").1.wants_empty_final());
    let json = format!("{{{INPUT}{rest}}}");
    let model = model(0, vec![spec("IN", DataType::Uint8, &[1])]);
    let error = decode(
        &Bytes::from(json.clone().into_bytes()),
        json.len(),
        &model,
        None,
        &RegionTable::default(),
    );
    assert_eq!(error.expect_err("reserved").code(), Code::InvalidArg);
}
