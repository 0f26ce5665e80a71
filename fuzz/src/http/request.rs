//! Inference requests over HTTP that are right: they are read as they were meant; and then changed.

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_protocol::http::decode;
use serde_json::{Value, json};

use super::body::BOUND;
use crate::{
    edits::{self, Edit},
    memory::bounded,
    values::{MODEL, Values, assert_holds, without_twins},
};

/// A request, valid once it was put in order.
#[derive(Arbitrary, Debug)]
pub struct Request {
    id: Option<String>,
    inputs: Vec<Input>,
    priority: Option<u8>,
    wants_binary: Option<bool>,
    classes: Option<u16>,
}

#[derive(Arbitrary, Debug)]
struct Input {
    values: Values,
    form: Form,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Form {
    Flat,
    Nested,
    Binary,
}

/// The target.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(mut request) = source.arbitrary::<Request>() else { return };
    let Ok(edits) = source.arbitrary::<Vec<Edit>>() else { return };
    let (mut body, header_length) = request.encode();
    check(&request, &body, header_length);
    edits::apply(&mut body, &edits);
    let (body, model) = (Bytes::from(body), &*MODEL);
    let _ = bounded(body.len(), BOUND, || {
        decode(&body, header_length.min(body.len()), model, Some(1), &RegionTable::default())
    });
}

fn check(request: &Request, body: &[u8], header_length: usize) {
    let (body, model) = (Bytes::copy_from_slice(body), &*MODEL);
    let decoded = bounded(body.len(), BOUND, || {
        decode(&body, header_length, model, Some(1), &RegionTable::default())
    });
    let (decoded, _) = decoded.expect("a valid request");
    assert_eq!(decoded.id, request.id.as_deref().unwrap_or_default());
    assert_holds(&decoded, request.inputs.iter().map(|input| &input.values));
}

impl Request {
    /// Body and length of its JSON.
    pub fn encode(&mut self) -> (Vec<u8>, usize) {
        without_twins(&mut self.inputs, |input| &input.values);
        let mut tail = Vec::new();
        let inputs: Vec<Value> =
            self.inputs.iter_mut().map(|input| input.encode(&mut tail)).collect();
        let mut body = json!({ "inputs": inputs, "outputs": [self.output()] });
        if let Some(id) = &self.id {
            body["id"] = json!(id);
        }
        if let Some(priority) = self.priority {
            body["parameters"] = json!({ "priority": priority });
        }
        let mut body = serde_json::to_vec(&body).expect("JSON");
        let header_length = body.len();
        body.append(&mut tail);
        (body, header_length)
    }

    fn output(&self) -> Value {
        let mut output = json!({ "name": "OUTPUT3", "parameters": {} });
        if let Some(binary) = self.wants_binary {
            output["parameters"]["binary_data"] = json!(binary);
        }
        if let Some(classes) = self.classes {
            output["parameters"]["classification"] = json!(u32::from(classes) + 1);
        }
        output
    }
}

impl Input {
    fn encode(&mut self, tail: &mut Vec<u8>) -> Value {
        self.values.make_finite();
        let values = &self.values;
        let mut input = json!({
            "name": values.input(),
            "datatype": values.data_type().protocol_name(),
            "shape": [values.count()],
        });
        match self.form {
            Form::Flat => input["data"] = elements(values),
            Form::Nested => input["data"] = json!([elements(values)]),
            Form::Binary => {
                let bytes = values.bytes();
                input["parameters"] = json!({ "binary_data_size": bytes.len() });
                tail.extend(bytes);
            }
        }
        input
    }
}

fn elements(values: &Values) -> Value {
    match values {
        Values::Bool(values) => json!(values),
        Values::Int8(values) => json!(values),
        Values::Uint64(values) => json!(values),
        Values::Fp32(values) => json!(values),
        Values::Fp64(values) => json!(values),
        Values::Bytes(values) => json!(values),
    }
}
