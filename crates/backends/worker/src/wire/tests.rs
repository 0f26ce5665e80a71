//! Messages are read as they were written; any other bytes are [`ProtocolError`] or read without a panic.

use galatea_types::{
    Code, CorrelationId, DataType, Error, InferRequest, InferResponse, ParameterValue, Result,
    Tensor, TraceContext,
};
use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Blocks for Kept {
    fn put(&mut self, bytes: &[u8]) -> Result<u64> {
        self.0.push(bytes.to_vec());
        Ok(self.0.len() as u64 - 1)
    }
}

fn tensor(name: &str, count: usize) -> Tensor {
    Tensor::new(name, DataType::Uint8, [count as i64], vec![7; count])
}

fn request() -> InferRequest {
    InferRequest {
        id: "r".to_owned(),
        parameters: vec![("a\"b".to_owned(), ParameterValue::Int(-3))],
        correlation_id: CorrelationId::Text("seq".to_owned()),
        sequence_end: true,
        ..InferRequest::new("m")
    }
}

fn sent<'a>(request: &'a InferRequest, inputs: &'a [Tensor]) -> SentRequest<'a> {
    SentRequest { key: 9, model_version: 2, request, inputs, outputs: &[], trace: None }
}

#[test]
fn requests_round_trip() {
    let (mut message, mut blocks) = (OutgoingMessage::new(kind::EXECUTE, 1), Kept::default());
    let inputs = [tensor("A", 3), tensor("B", 5), tensor("C", INLINE_LIMIT)];
    put_request(&mut message, &sent(&request(), &inputs), &mut blocks).expect("written");
    let read = RequestHead::read(&mut Reader::new(&message.meta)).expect("read");
    assert_eq!((read.key, read.model_version, read.flags), (9, 2, 2));
    assert_eq!((read.id, read.correlation_text, read.model), ("r", "seq", ""));
    assert_eq!(read.parameters, br#"{"a\"b":-3}"#);
    let places: Vec<TensorPlace> = read.inputs.iter().map(|t| t.place).collect();
    assert_eq!(places, [TensorPlace::Inline(0), TensorPlace::Inline(16), TensorPlace::Arena(0)]);
    assert_eq!((message.data.len(), blocks.0.len()), (21, 1));
}

#[test]
fn responses_round_trip() {
    let mut message = OutgoingMessage::new(kind::INFERRED, 1);
    let response = InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs: vec![tensor("A", 3)],
    };
    put_response(&mut message, 0, Some(&Ok(response)), &mut Kept::default()).expect("written");
    let error = Err(Error::not_found("nothing"));
    put_response(&mut message, 0, Some(&error), &mut Kept::default()).expect("written");
    put_response(&mut message, 0, None, &mut Kept::default()).expect("written");
    let mut reader = Reader::new(&message.meta);
    let mut read = || ResponseHead::read(&mut reader).expect("read");
    assert_eq!(read().outputs.len(), 1);
    assert_eq!(read().error, Some((Code::NotFound, "nothing")));
    assert_eq!(read().body, Body::None);
}

#[test]
fn headers_round_trip() {
    let header = Header {
        kind: kind::EXECUTED,
        flags: flag::FINAL,
        released: 2,
        count: 3,
        id: u64::MAX,
        meta_length: 20,
        is_spilled: false,
    };
    let mut packet = header.bytes().to_vec();
    packet.extend([5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(b"metadata");
    let Ok(ParsedPacket::Whole(packet)) = ParsedPacket::read(&packet) else { panic!("not whole") };
    assert_eq!(packet.header, header);
    assert_eq!(packet.released().collect::<Vec<_>>(), [5, 6]);
    assert_eq!((packet.payload.meta, packet.payload.data), (&b"meta"[..], &b"data"[..]));
}

#[test]
fn string_elements_must_fill_their_tensor() {
    assert!(holds_strings(&[1, 0, 0, 0, b'a', 0, 0, 0, 0], 2));
    assert!(!holds_strings(&[1, 0, 0, 0, b'a', 0, 0, 0, 0], 1));
    assert!(!holds_strings(&[2, 0, 0, 0, b'a'], 1));
    assert!(holds_strings(&[], 0));
}

#[test]
fn spans_round_trip_in_every_form_models_may_write() {
    let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let span = TraceContext::parse(header.as_bytes()).expect("good");
    let mut message = OutgoingMessage::new(kind::EXECUTE, 1);
    let request = request();
    let sent = SentRequest { trace: Some(&span), ..sent(&request, &[]) };
    put_request(&mut message, &sent, &mut Kept::default()).expect("written");
    let head = RequestHead::read(&mut Reader::new(&message.meta)).expect("read");
    assert_eq!(head.trace, format!("{{\"traceparent\":\"{header}\"}}"));
    assert_eq!(head.trace_context().as_ref(), Some(&span));
    let read_of = |trace: &str| RequestHead { trace, ..head.clone() }.trace_context();
    let with_state = format!("{{ \"tracestate\": \"a=b\", \"traceparent\" : \"{header}\" }}");
    assert_eq!(read_of(&with_state), Some(span.clone().with_state(b"a=b")));
    let quoted = span.clone().with_state(br#"a="b\c""#);
    let mut message = OutgoingMessage::new(kind::EXECUTE, 1);
    put_request(&mut message, &SentRequest { trace: Some(&quoted), ..sent }, &mut Kept::default())
        .expect("written");
    let head = RequestHead::read(&mut Reader::new(&message.meta)).expect("read");
    assert_eq!(head.trace_context(), Some(quoted));
    for text in
        ["", "traceparent", "{\"traceparent\":\"00-00-00-00\"}", &with_state.replace(':', "")]
    {
        assert_eq!(read_of(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_anything(&bytes);
    }

    #[test]
    fn damaged_messages_are_read_without_a_panic(at in 0_usize..300, byte: u8, cut in 0_usize..300) {
        let mut message = OutgoingMessage::new(kind::EXECUTE, 1);
        let inputs = [tensor("A", 3)];
        put_request(&mut message, &sent(&request(), &inputs), &mut Kept::default())
            .expect("written");
        let header = Header {
            meta_length: u32::try_from(message.meta.len()).expect("short"),
            ..Header::default()
        };
        let mut packet = header.bytes().to_vec();
        packet.append(&mut message.meta);
        packet.append(&mut message.data);
        if let Some(place) = packet.get_mut(at) {
            *place = byte;
        }
        packet.truncate(packet.len().saturating_sub(cut));
        read_anything(&packet);
    }
}

#[test]
fn error_codes_round_trip() {
    use galatea_types::Code::{
        AlreadyExists, Cancelled, Exhausted, Internal, InvalidArg, NotFound, Unavailable, Unknown,
        Unsupported,
    };
    let known = [
        Unknown,
        Internal,
        NotFound,
        InvalidArg,
        Unavailable,
        Unsupported,
        AlreadyExists,
        Cancelled,
    ];
    for code in known {
        assert_eq!(code_from_number(code_number(code)), Ok(Some(code)));
    }
    assert_eq!(code_number(Exhausted), code_number(Unavailable));
    assert_eq!(code_from_number(0), Ok(None));
    code_from_number(9).expect_err("no such code");
}
