//! What passes between server and Python workers.

use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use galatea_types::{CorrelationId, InferRequest, InferResponse, ParameterValue, Result, Tensor};
use galatea_worker::{
    received_request,
    wire::{
        Blocks, Header, OutgoingMessage, Reader, RequestHead, ResponseHead, SentRequest,
        TensorHead, TensorPlace, kind, put_request, put_response, read_anything,
    },
};

use crate::{
    edits::{self, Edit},
    values::{Values, without_twins},
};

/// Any bytes as a packet: a message or an error, never a panic.
pub fn message(packet: &[u8]) {
    read_anything(packet);
}

#[derive(Arbitrary, Debug)]
struct Exchange {
    key: u64,
    version: i64,
    id: String,
    inputs: Vec<Values>,
    parameters: Vec<(String, i64)>,
    correlation: Correlation,
    is_start: bool,
    is_end: bool,
    edits: Vec<Edit>,
}

/// The sequence that a request belongs to.
#[derive(Arbitrary, Debug)]
enum Correlation {
    None,
    Number(u64),
    Text(String),
}

/// Where tensors go that are too large for a packet.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Blocks for Kept {
    fn put(&mut self, bytes: &[u8]) -> Result<u64> {
        self.0.push(bytes.to_vec());
        Ok(self.0.len() as u64 - 1)
    }
}

/// Requests and responses are read as they were written; and then changed.
pub fn exchange(data: &[u8]) {
    let Ok(mut exchange) = Unstructured::new(data).arbitrary::<Exchange>() else { return };
    without_twins(&mut exchange.inputs, |values| values);
    let tensors = exchange.tensors();
    let mut kept = Kept::default();
    let mut message = OutgoingMessage::new(kind::EXECUTE, 1);
    exchange.write_request(&mut message, &tensors, &mut kept);
    exchange.check_request(&message, &tensors, &kept);
    exchange.damage(&message);
    message.reset(kind::EXECUTED, 1);
    exchange.write_response(&mut message, &tensors, &mut kept);
    check_response(&message, &tensors, &kept);
    exchange.damage(&message);
}

impl Exchange {
    fn tensors(&self) -> Vec<Tensor> {
        let tensor = |v: &Values| {
            let count = i64::try_from(v.count()).expect("short");
            Tensor::new(v.input(), v.data_type(), [count], v.bytes())
        };
        self.inputs.iter().map(tensor).collect()
    }

    /// A number of 0 and an empty text are none.
    fn correlation(&self) -> CorrelationId {
        match &self.correlation {
            Correlation::None | Correlation::Number(0) => CorrelationId::None,
            Correlation::Text(text) if text.is_empty() => CorrelationId::None,
            Correlation::Number(number) => CorrelationId::Number(*number),
            Correlation::Text(text) => CorrelationId::Text(text.as_str().into()),
        }
    }

    fn request(&self) -> InferRequest {
        let parameters = self.parameters.iter();
        InferRequest {
            id: self.id.clone(),
            parameters: parameters.map(|(k, v)| (k.clone(), ParameterValue::Int(*v))).collect(),
            correlation_id: self.correlation(),
            sequence_start: self.is_start,
            sequence_end: self.is_end,
            ..InferRequest::new("")
        }
    }

    fn write_request(&self, message: &mut OutgoingMessage, inputs: &[Tensor], kept: &mut Kept) {
        let outputs = [Arc::from("OUTPUT0")];
        let request = &self.request();
        let (key, model_version) = (self.key, self.version);
        let sent =
            SentRequest { key, model_version, request, inputs, outputs: &outputs, trace: None };
        put_request(message, &sent, kept).expect("short enough");
    }

    fn check_request(&self, message: &OutgoingMessage, tensors: &[Tensor], kept: &Kept) {
        let mut reader = Reader::new(&message.meta);
        let head = RequestHead::read(&mut reader).expect("our own message");
        assert_eq!((head.key, head.model_version), (self.key, self.version));
        assert_same(&head.inputs, tensors, &message.data, kept);
        let (read, sent) =
            (received_request(&head, tensors.to_vec()).expect("ours"), self.request());
        assert_eq!(read.id, sent.id);
        assert_eq!((read.sequence_start, read.sequence_end), (self.is_start, self.is_end));
        assert_eq!(read.correlation_id, sent.correlation_id);
        assert_eq!(read.parameters.len(), distinct(&self.parameters));
    }

    fn write_response(&self, message: &mut OutgoingMessage, outputs: &[Tensor], kept: &mut Kept) {
        let response = InferResponse {
            model_name: "m".into(),
            model_version: 1,
            id: self.id.clone(),
            parameters: Vec::new(),
            outputs: outputs.to_vec(),
        };
        put_response(message, self.key, Some(&Ok(response)), kept).expect("short enough");
    }

    /// Reads the message as a packet, changed.
    fn damage(&self, message: &OutgoingMessage) {
        let header = Header {
            kind: message.kind,
            id: message.id,
            meta_length: u32::try_from(message.meta.len()).expect("short"),
            ..Header::default()
        };
        let mut packet = header.bytes().to_vec();
        packet.extend(&message.meta);
        packet.extend(&message.data);
        edits::apply(&mut packet, &self.edits);
        read_anything(&packet);
    }
}

fn check_response(message: &OutgoingMessage, tensors: &[Tensor], kept: &Kept) {
    let mut reader = Reader::new(&message.meta);
    let head = ResponseHead::read(&mut reader).expect("our own message");
    assert_eq!(head.error, None);
    assert_same(&head.outputs, tensors, &message.data, kept);
}

fn assert_same(heads: &[TensorHead<'_>], tensors: &[Tensor], data: &[u8], kept: &Kept) {
    assert_eq!(heads.len(), tensors.len());
    for (head, tensor) in heads.iter().zip(tensors) {
        assert_eq!((head.name, head.data_type), (&*tensor.name, tensor.data_type));
        let bytes = match head.place {
            TensorPlace::Inline(start) => &data[start..start + head.byte_length],
            TensorPlace::Arena(block) => &kept.0[usize::try_from(block).expect("small")],
        };
        assert_eq!(bytes, tensor.host().expect("on the host"));
    }
}

fn distinct(parameters: &[(String, i64)]) -> usize {
    parameters.iter().map(|(name, _)| name).collect::<std::collections::BTreeSet<_>>().len()
}
