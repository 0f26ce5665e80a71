//! Inference requests over gRPC that are right: they are read as they were meant; and then changed.

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_proto::inference::{
    InferParameter, InferTensorContents, ModelInferRequest,
    infer_parameter::ParameterChoice,
    model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
};
use galatea_protocol::grpc::{RequestMessage, decode};
use prost::Message as _;

use super::message::{BOUND, pieces};
use crate::{
    edits::{self, Edit},
    memory::bounded,
    values::{MODEL, Values, assert_holds, without_twins},
};

/// A request, valid once it was put in order.
#[derive(Arbitrary, Debug)]
pub struct Request {
    id: String,
    inputs: Vec<Values>,
    is_raw: bool,
    priority: Option<u8>,
    classes: Option<u16>,
}

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(mut request) = source.arbitrary::<Request>() else { return };
    let Ok((edits, size)) = source.arbitrary::<(Vec<Edit>, u8)>() else { return };
    let model = &*MODEL;
    let mut message = request.message().encode_to_vec();
    let decoded = bounded(message.len(), BOUND, || {
        decode(
            RequestMessage::read(pieces(&message, size)).expect("a message"),
            model,
            &RegionTable::default(),
        )
    });
    let (decoded, _) = decoded.expect("a valid request");
    assert_eq!(decoded.id, request.id);
    assert_holds(&decoded, request.inputs.iter());
    edits::apply(&mut message, &edits);
    let _ = bounded(message.len(), BOUND, || {
        decode(RequestMessage::read(pieces(&message, size)).ok()?, model, &RegionTable::default())
            .ok()
    });
}

impl Request {
    /// As it goes over the wire.
    pub fn message(&mut self) -> ModelInferRequest {
        without_twins(&mut self.inputs, |values| values);
        let raw = self.inputs.iter().filter(|_| self.is_raw).map(|v| Bytes::from(v.bytes()));
        let priority = self.priority.map(|priority| parameter("priority", priority.into()));
        ModelInferRequest {
            model_name: "m".to_owned(),
            id: self.id.clone(),
            parameters: priority.into_iter().collect(),
            inputs: self.inputs.iter().map(|values| input(values, !self.is_raw)).collect(),
            outputs: vec![InferRequestedOutputTensor {
                name: "OUTPUT3".to_owned(),
                parameters: self
                    .classes
                    .map(|classes| parameter("classification", i64::from(classes) + 1))
                    .into_iter()
                    .collect(),
            }],
            raw_input_contents: raw.collect(),
            ..Default::default()
        }
    }
}

fn parameter(name: &str, value: i64) -> (String, InferParameter) {
    let choice = ParameterChoice::Int64Param(value);
    (name.to_owned(), InferParameter { parameter_choice: Some(choice) })
}

fn input(values: &Values, is_typed: bool) -> InferInputTensor {
    InferInputTensor {
        name: values.input().to_owned(),
        datatype: values.data_type().protocol_name().to_owned(),
        shape: vec![i64::try_from(values.count()).expect("short")],
        contents: is_typed.then(|| contents(values)),
        ..Default::default()
    }
}

fn contents(values: &Values) -> InferTensorContents {
    let mut contents = InferTensorContents::default();
    match values.clone() {
        Values::Bool(values) => contents.bool_contents = values,
        Values::Int8(values) => {
            contents.int_contents = values.into_iter().map(i32::from).collect();
        }
        Values::Uint64(values) => contents.uint64_contents = values,
        Values::Fp32(values) => contents.fp32_contents = values,
        Values::Fp64(values) => contents.fp64_contents = values,
        Values::Bytes(values) => {
            contents.bytes_contents = values.into_iter().map(Bytes::from).collect();
        }
    }
    contents
}
