//! Requests as they come from the network, cut anywhere, and what other writers of protobuf may make of one.

use proptest::prelude::*;

use super::*;

fn tensors(sizes: &[usize]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: "m".into(),
        id: "i".repeat(200),
        parameters: [("p".to_owned(), parameter(BoolParam(true)))].into(),
        inputs: (0..sizes.len())
            .map(|i| InferInputTensor {
                name: format!("INPUT{i}"),
                shape: vec![sizes[i] as i64, 300],
                ..input()
            })
            .collect(),
        raw_input_contents: sizes
            .iter()
            .map(|&n| (0..n).map(|i| i as u8).collect::<Vec<_>>().into())
            .collect(),
        ..Default::default()
    }
}

fn cut(whole: &Bytes, size: usize) -> Pieces {
    let mut pieces = Pieces::default();
    for start in (0..whole.len()).step_by(size) {
        pieces.push(whole.slice(start..whole.len().min(start + size)));
    }
    pieces
}

fn read_cut(whole: &Bytes, size: usize) -> Result<InferRequest> {
    let message = RequestMessage::read(cut(whole, size))?;
    Ok(super::super::decode(message, &config(), &RegionTable::default())?.0)
}

#[test]
fn a_request_decodes_the_same_at_any_split() {
    let sizes = [0, 1, 77, 5000, 2];
    let request = tensors(&sizes);
    let whole = Bytes::from(request.encode_to_vec());
    for size in [1, 2, 3, 7, 64, 1000, 1024, 2000, whole.len()] {
        let read = read_cut(&whole, size).expect("whole");
        assert_eq!(read.id, request.id);
        let found: Vec<_> = read
            .inputs
            .iter()
            .map(|i| (&*i.name, i.shape.to_vec(), i.host().expect("host")))
            .collect();
        let sent = request.inputs.iter().zip(&request.raw_input_contents);
        let sent: Vec<_> = sent.map(|(i, raw)| (&*i.name, i.shape.clone(), &raw[..])).collect();
        assert_eq!(found, sent, "{size}");
    }
}

#[test]
fn a_tensor_in_one_piece_is_shared_and_a_split_one_is_aligned() {
    let whole = Bytes::from(tensors(&[5000]).encode_to_vec());
    let shared = read_cut(&whole, whole.len()).expect("whole");
    assert!(whole.as_ptr_range().contains(&shared.inputs[0].host().expect("host").as_ptr()));
    let gathered = read_cut(&whole, 1024).expect("whole");
    assert!(gathered.inputs[0].data.is_aligned_to(64));
}

#[test]
fn a_truncated_request_is_an_error() {
    let whole = Bytes::from(tensors(&[50, 3]).encode_to_vec());
    // A length greater than what there is must fail before anything is allocated for it.
    let huge = Bytes::from_static(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2]);
    for bad in [whole.slice(..whole.len() - 1), huge, Bytes::from_static(&[0xff; 3])] {
        for size in [1, 5, bad.len()] {
            let error = read_cut(&bad, size).expect_err("cut off");
            assert_eq!(error.code(), Code::Internal);
            assert!(error.message().starts_with(UNREADABLE), "{error}");
        }
    }
}

/// The error tells a client which field has the wrong bytes.
#[test]
fn decoding_errors_name_field_and_offset() {
    let request = |inputs: &[u8]| [b"\x0a\x01m", inputs].concat();
    let nested = |number: u8, value: &[u8]| [&[number, value.len() as u8], value].concat();
    let input = |fields: &[u8]| nested(0x2a, &[b"\x0a\x01I", fields].concat());
    let floats = [0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 9];
    let raw = "; the raw bytes of a tensor belong into raw_input_contents";
    for (message, expected) in [
        (
            request(&input(&nested(0x12, &[0xff, 0xfe]))),
            "inputs[0].datatype, byte 10: the field takes UTF-8 text, and this is not",
        ),
        (
            request(&[input(&[]), input(&nested(0x2a, &floats))].concat()),
            &format!("inputs[1].contents, byte 15: no field begins here, or it is cut off{raw}"),
        ),
        (
            request(&input(&nested(0x2a, &nested(0x32, &floats)))),
            &format!(
                "inputs[0].contents.fp32_contents, byte 12: the numbers of the field are cut off{raw}"
            ),
        ),
        (
            request(&nested(
                0x22,
                &[b"\x0a\x01k", &nested(0x12, &nested(0x1a, &[0xc0]))[..]].concat(),
            )),
            "parameters[0].value.string_param, byte 12: the field takes UTF-8 text, and this is not",
        ),
        (request(&[0x08, 1]), "model_name, byte 3: the field takes a value of another kind"),
        (
            request(&[0x3a, 9, 1]),
            "raw_input_contents, byte 3: the field is longer than what follows",
        ),
        (request(&[0xff; 12]), "byte 3: no field begins here, or it is cut off"),
        (
            nested(0x0a, &[b'm', 0xff]),
            "model_name, byte 3: the field takes UTF-8 text, and this is not",
        ),
    ] {
        for size in [1, 4, message.len()] {
            let error = read_cut(&message.clone().into(), size).expect_err(expected);
            assert_eq!(error.message(), format!("{UNREADABLE} ({expected})"));
        }
    }
}

const UNREADABLE: &str = "Unable to parse request";

/// What protobuf allows and clients seldom write: fields twice, of which the last one counts or which are joined, numbers
/// packed and not, unknown fields.
#[test]
fn concatenated_messages_are_merged_as_in_protobuf() {
    let first = changed(|r| {
        r.model_name = "other".into();
        set(r, "p", Int64Param(1));
        set(r, "q", Int64Param(1));
        r.raw_input_contents.clear();
        r.inputs.clear();
    });
    let second = changed(|r| {
        set(r, "p", text("x"));
        r.raw_input_contents.clear();
        r.inputs.clear();
    });
    let contents = |values: &[u8]| {
        [&[0x2a, values.len() as u8 + 2, 0x12, values.len() as u8], values].concat()
    };
    let input = [
        input().encode_to_vec(),
        contents(&[1, 2]),
        // A number that is not packed.
        vec![0x2a, 2, 0x10, 3],
        vec![0x18, 7],
        b"\x12\x05INT32".to_vec(),
        // Unknown: a number, a group, four bytes.
        vec![0xf8, 1, 5, 0xfb, 1, 8, 1, 0xfc, 1, 0xfd, 1, 1, 2, 3, 4],
    ]
    .concat();
    let tail = [&[0x2a, input.len() as u8][..], &input].concat();
    let bytes = [first.encode_to_vec(), second.encode_to_vec(), tail].concat();
    let expected = ModelInferRequest::decode(&bytes[..]).expect("protobuf's reader takes it");
    let (request, _) = read(bytes.into(), &config(), &RegionTable::default()).expect("good");
    assert_eq!(request.inputs[0].shape[..], expected.inputs[0].shape);
    assert_eq!(request.inputs[0].shape[..], [2, 7]);
    let data: Vec<u8> = [1, 2, 3].iter().flat_map(|n: &i32| n.to_le_bytes()).collect();
    assert_eq!(request.inputs[0].host().expect("host"), data);
    let parameters = [("p", ParameterValue::String("x".into())), ("q", ParameterValue::Int(1))];
    assert_eq!(request.parameters, parameters.map(|(k, v)| (k.to_owned(), v)));
}

/// Whether this may be a tag of a field of parameters that says of something else than a length follows.
fn is_map_of_another_form(byte: &u8) -> bool {
    matches!(byte >> 3, 2 | 4) && byte & 7 != 2
}

/// Any bytes, and a good message with some of them changed: the second gets much deeper.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let good = changed(|r| {
        r.id = "id".into();
        set(r, "sequence_id", text("s"));
        set_input(r, "shared_memory_region", text("r"));
        ask(r, &[("classification", Int64Param(2))]);
        r.inputs.push(InferInputTensor { contents: Some(fp32s()), ..input() });
    });
    let typed = changed(|r| {
        set(r, "custom", DoubleParam(2.0));
        let contents =
            InferTensorContents { int64_contents: vec![1, -1, 300], ..Default::default() };
        typed(r, "INT64", contents);
    });
    let good = prop::sample::select(vec![good.encode_to_vec(), typed.encode_to_vec()]);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let edited = (good, edits).prop_map(|(mut bytes, edits)| {
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), edited]
}

proptest! {
    /// Any split gives the same result as protobuf's own reader.
    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(bytes in messages(), size in 1usize..64) {
        let whole = Bytes::from(bytes);
        let outcome = format!("{:?}", read_cut(&whole, size));
        match ModelInferRequest::decode(&whole[..]) {
            Err(_) => prop_assert!(outcome.contains(UNREADABLE), "{outcome}"),
            // protobuf's own reader takes a map for one whatever its tag says of its form.
            Ok(_) if outcome.contains(UNREADABLE) => prop_assert!(whole.iter().any(is_map_of_another_form)),
            Ok(message) => {
                let again = read_cut(&message.encode_to_vec().into(), usize::MAX);
                prop_assert_eq!(outcome, format!("{again:?}"));
            }
        }
    }
}
