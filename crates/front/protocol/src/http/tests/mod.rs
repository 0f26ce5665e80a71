//! Bytes in, bytes out. Texts and statuses are those a Triton 2.51 gave to the same bytes.

mod decoding;
mod documents;
mod encoding;
mod generate;
mod lines;
mod numbers;
mod properties;
mod refusals;
mod repeated;

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_engine::RegionTable;
use galatea_types::{Buffer, DataType, InferRequest, Result};

use super::decode;
use crate::AnswerPlan;

/// Name, type and dimensions of an input.
type Spec = (&'static str, DataType, Vec<i64>);

fn spec(name: &'static str, data_type: DataType, dims: &[i64]) -> Spec {
    (name, data_type, dims.to_vec())
}

/// Each input has an output named alike, of the same type and dimensions.
fn model(max_batch_size: u32, inputs: Vec<Spec>) -> ModelConfig {
    let mut text = format!("backend: 'identity' max_batch_size: {max_batch_size}\n");
    for (name, data_type, dims) in inputs {
        text += &testing::tensors("input", [name], data_type, &dims);
        text += &testing::tensors("output", [name.replace("IN", "OUT")], data_type, &dims);
    }
    testing::model_config(&text)
}

/// A model that has the inputs of these tests. Their types and dimensions are not looked at here.
fn any_model() -> ModelConfig {
    model(0, vec![spec("I", DataType::Fp32, &[-1])])
}

fn decode_json(json: impl AsRef<[u8]>) -> Result<(InferRequest, AnswerPlan)> {
    let json = json.as_ref();
    decode(&Bytes::from(json.to_vec()), json.len(), &any_model(), None, &RegionTable::default())
}

fn decode_binary(json: &str, tail: &[u8]) -> Result<(InferRequest, AnswerPlan)> {
    let body = Bytes::from([json.as_bytes(), tail].concat());
    decode(&body, json.len(), &any_model(), None, &RegionTable::default())
}

/// The data of the one input of a request with this JSON data.
fn data_of(data_type: &str, shape: &str, data: &str) -> Result<Buffer> {
    let json = format!(
        r#"{{"inputs":[{{"name":"I","shape":{shape},"datatype":"{data_type}","data":{data}}}]}}"#
    );
    decode_json(json).map(|(request, _)| request.inputs[0].data.clone())
}
