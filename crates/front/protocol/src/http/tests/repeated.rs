//! Requests of one connection that have the same text.

use bytes::Bytes;
use galatea_config::ModelConfig;
use galatea_engine::RegionTable;
use galatea_types::{DataType, InferRequest, Result};
use proptest::prelude::*;

use super::{decode, model, spec};
use crate::{AnswerPlan, http::LastHeader};

fn two_inputs(max_batch_size: u32) -> ModelConfig {
    model(
        max_batch_size,
        vec![spec("IN0", DataType::Int32, &[-1]), spec("IN1", DataType::Uint8, &[-1])],
    )
}

const TEXT: &str = r#"{"inputs":[{"name":"IN0","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}},{"name":"IN1","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}}],"outputs":[{"name":"OUT1","parameters":{"binary_data":true}},{"name":"OUT0","parameters":{"classification":2}}]}"#;

fn shown(result: Result<(InferRequest, AnswerPlan)>) -> String {
    match result {
        Ok((request, plan)) => {
            let data = request.inputs.iter().map(|input| input.host().expect("in host memory"));
            format!("{request:?} {plan:?} {:?}", data.collect::<Vec<_>>())
        }
        Err(error) => format!("{:?}: {}", error.code(), error.message()),
    }
}

/// Each request is decoded as it would be alone.
#[track_caller]
fn check(
    last: &mut LastHeader,
    model: &ModelConfig,
    version: Option<i64>,
    text: &str,
    tail: &[u8],
) {
    let body = Bytes::from([text.as_bytes(), tail].concat());
    let alone = shown(decode(&body, text.len(), model, version, &RegionTable::default()));
    let found = last.decode(&body, text.len(), model, version, &RegionTable::default());
    let found = shown(found.and_then(|(request, plan)| Ok((request.read()?, plan))));
    assert_eq!(found, alone, "{text} {tail:?}");
}

#[test]
fn a_repeated_json_header_is_combined_with_new_data() {
    let (model, mut last) = (two_inputs(0), LastHeader::default());
    for number in 0..5 {
        check(&mut last, &model, None, TEXT, &[number, 1, 2, 3, 4, number]);
        assert_eq!(last.is_kept(), number > 0, "from the second on");
    }
    check(&mut last, &model, None, TEXT, &[1; 5]);
    check(&mut last, &model, None, TEXT, &[1; 7]);
    check(&mut last, &model, None, TEXT, &[]);
    check(&mut last, &model, None, TEXT, &[9; 6]);
}

#[test]
fn a_json_header_is_decoded_again_for_another_model_or_version() {
    let mut last = LastHeader::default();
    let renamed = galatea_config::testing::model_config(
        "name: 'other' backend: 'identity' input { name: 'IN0' data_type: TYPE_INT32 dims: -1 }
         output { name: 'OUT0' data_type: TYPE_INT32 dims: -1 }",
    );
    let models = [two_inputs(0), two_inputs(8), renamed, super::any_model()];
    for _ in 0..3 {
        for model in &models {
            for version in [None, Some(1), Some(2)] {
                for _ in 0..3 {
                    check(&mut last, model, version, TEXT, &[7; 6]);
                }
            }
        }
    }
}

#[test]
fn requests_with_ids_parameters_or_json_data_are_not_kept() {
    let (model, mut last) = (two_inputs(0), LastHeader::default());
    let with_id = TEXT.replacen('{', r#"{"id":"7","#, 1);
    let with_parameter = TEXT.replacen('{', r#"{"parameters":{"a":1},"#, 1);
    let spaces = TEXT.replacen('{', &format!("{{{}", " ".repeat(1 << 10)), 1);
    let in_text = r#"{"inputs":[{"name":"IN0","shape":[1],"datatype":"INT32","data":[5]}]}"#;
    let empty = r#"{"inputs":[{"name":"IN0","shape":[0],"datatype":"INT32","data":[]}]}"#;
    for text in [&with_id, &with_parameter, &spaces] {
        for number in 0..3 {
            check(&mut last, &model, None, text, &[number; 6]);
            assert!(!last.is_kept(), "{text}");
        }
    }
    for text in [in_text, empty] {
        for _ in 0..3 {
            check(&mut last, &model, None, text, &[]);
            assert!(!last.is_kept(), "{text}");
        }
    }
}

#[test]
fn json_inputs_beside_binary_ones_are_decoded_each_time() {
    let (model, mut last) = (two_inputs(0), LastHeader::default());
    for number in 0..4 {
        let text = TEXT
            .replace(r#""parameters":{"binary_data_size":4}"#, &format!(r#""data":[{number}]"#));
        check(&mut last, &model, None, &text, &[number; 2]);
        assert!(!last.is_kept());
    }
}

#[test]
fn a_kept_request_holds_no_data() {
    let (model, mut last) = (two_inputs(0), LastHeader::default());
    let body = Bytes::from([TEXT.as_bytes(), &[1; 6]].concat());
    for _ in 0..3 {
        last.decode(&body, TEXT.len(), &model, None, &RegionTable::default()).expect("good");
    }
    assert!(last.is_kept());
    assert!(body.try_into_mut().is_ok(), "nothing else holds the body");
}

proptest! {
    #[test]
    fn repeated_requests_are_decoded_like_single_ones(
        requests in prop::collection::vec((0..3usize, 1..3u8, 0..3usize, 0..8usize, any::<u8>()), 1..20),
    ) {
        let models = [two_inputs(0), two_inputs(4), super::any_model()];
        let mut last = LastHeader::default();
        for (model, size, change, tail, byte) in requests {
            let text = match change {
                0 => TEXT.to_owned(),
                1 => TEXT.replace("[2]", &format!("[{size}]")),
                _ => TEXT.replace("size\":2", &format!("size\":{size}")),
            };
            check(&mut last, &models[model], None, &text, &vec![byte; tail]);
        }
    }
}
