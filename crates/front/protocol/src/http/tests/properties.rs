//! Properties that hold for any input: no panic, and what is written reads back the same.

use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_types::{DataType, InferResponse};
use proptest::prelude::*;

use super::{model, spec};
use crate::http::{decode, decode_generate, encode_generate, json::JsonCursor};

/// Pieces that make up requests, so that random sequences reach deep into the decoder.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"inputs\"",
        "\"outputs\"",
        "\"parameters\"",
        "\"name\"",
        "\"shape\"",
        "\"datatype\"",
        "\"data\"",
        "\"id\"",
        "\"FP32\"",
        "\"BYTES\"",
        "\"INT8\"",
        "\"BOOL\"",
        "\"binary_data_size\"",
        "\"classification\"",
        "\"sequence_id\"",
        "true",
        "null",
        "1",
        "-1",
        "2.5",
        "1e9",
        "18446744073709551616",
        "NaN",
        "\"a\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"",
        "\\",
        "-",
        ".",
        "e",
        "{\"inputs\":[{\"name\":\"I\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":[1,2]}]}",
    ])
}

fn generate_piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"IN\":",
        "\"S\":",
        "\"id\":",
        "\"parameters\":{",
        "\"x\":",
        "1",
        "-1",
        "[1,2]",
        "[1,-2,3,4],",
        "[[1,2],[3]]",
        "2.5",
        "300",
        "true",
        "null",
        "\"a\\u0001\"",
        "[\"a\",\"\"]",
        "\"",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn decode_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), header in 0usize..220) {
        let model = model(2, vec![spec("IN", DataType::Fp32, &[-1])]);
        let _ = decode(&Bytes::from(bytes), header, &model, None, &RegionTable::default());
    }

    #[test]
    fn decode_never_panics_on_near_requests(
        pieces in prop::collection::vec(piece(), 0..40),
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let json = pieces.concat();
        let body = [json.as_bytes(), &tail].concat();
        let model = model(2, vec![spec("IN", DataType::Bytes, &[1])]);
        let _ = decode(&Bytes::from(body), json.len(), &model, None, &RegionTable::default());
    }

    #[test]
    fn generate_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let model = model(2, vec![spec("IN", DataType::Fp32, &[2, -1])]);
        let _ = decode_generate(&bytes, &model, None);
    }

    /// An accepted request fills its shapes and can be encoded.
    #[test]
    fn generate_never_panics_on_near_requests(pieces in prop::collection::vec(generate_piece(), 0..30)) {
        let json = format!("{{\"IN\":{}", pieces.concat());
        let inputs = vec![spec("IN", DataType::Int8, &[2, -1]), spec("S", DataType::Bytes, &[-1])];
        let Ok(request) = decode_generate(json.as_bytes(), &model(0, inputs), None) else { return Ok(()) };
        for input in &request.inputs {
            let expected = input.shape.byte_size(input.data_type);
            prop_assert!(expected.is_none_or(|n| n == input.data.len()), "{:?}", input);
        }
        let response = InferResponse {
            model_name: "m".into(),
            model_version: 1,
            id: request.id,
            parameters: request.parameters,
            outputs: request.inputs,
        };
        let flat = encode_generate(&response).expect("has a JSON form");
        prop_assert!(JsonCursor::check_document(&flat).is_ok(), "{}", String::from_utf8_lossy(&flat));
    }

    /// The parser accepts and refuses the same texts as a general JSON crate, except for Triton's dialect.
    #[test]
    fn syntax_errors_agree_with_serde_json(pieces in prop::collection::vec(piece(), 0..12)) {
        let text = pieces.concat();
        let is_dialect = text.contains("NaN");
        let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        let ours = JsonCursor::check_document(text.as_bytes()).is_ok();
        prop_assert!(is_dialect || ours == theirs, "{text}: {ours}");
    }

    #[test]
    fn doubles_are_decoded_exactly(value in any::<f64>()) {
        prop_assume!(value.is_finite());
        for text in [format!("{value:?}"), format!("{value:e}"), format!("{value}.0").replace(".0.0", ".0")] {
            let Ok(expected) = text.parse::<f64>() else { continue };
            let read = JsonCursor::new(text.as_bytes()).number().expect("a number").as_f64();
            prop_assert_eq!(read.to_bits(), expected.to_bits(), "{}", text);
        }
    }

    #[test]
    fn integers_are_decoded_exactly(unsigned in any::<u64>(), signed in any::<i64>()) {
        let number = |text: String| JsonCursor::new(text.as_bytes()).number().expect("a number");
        prop_assert_eq!(number(unsigned.to_string()).as_u64(), Some(unsigned));
        prop_assert_eq!(number(signed.to_string()).as_i64(), Some(signed));
    }
}
