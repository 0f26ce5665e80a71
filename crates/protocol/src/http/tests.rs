//! Bytes in, bytes out. Texts and statuses are those a Triton 2.51 gave to the same bytes.

mod decoding;
mod documents;
mod encoding;
mod generate;
mod lines;
mod properties;
mod refusals;

use galatea_config::{Format, ModelConfig, Scheduling, TensorSpec, VersionPolicy};
use galatea_types::{Buffer, DataType, InferRequest, Result, Shape};

use super::{ResponsePlan, decode};

fn spec(name: &str, data_type: DataType, dims: &[i64]) -> TensorSpec {
    TensorSpec {
        name: name.into(),
        data_type,
        dims: Shape::from(dims),
        reshape: None,
        format: Format::None,
        is_optional: false,
        allows_ragged_batch: false,
        label_filename: None,
    }
}

fn model(max_batch_size: u32, inputs: Vec<TensorSpec>) -> ModelConfig {
    ModelConfig {
        name: "m".into(),
        platform: String::new(),
        backend: "identity".to_owned(),
        version_policy: VersionPolicy::Latest(1),
        max_batch_size,
        outputs: inputs
            .iter()
            .map(|i| spec(&i.name.replace("IN", "OUT"), i.data_type, &i.dims))
            .collect(),
        inputs,
        instance_groups: Vec::new(),
        default_model_filename: String::new(),
        scheduling: Scheduling::Direct,
        parameters: Default::default(),
        metric_tags: Default::default(),
        is_decoupled: false,
        raw: Default::default(),
    }
}

fn decode_json(json: impl AsRef<[u8]>) -> Result<(InferRequest, ResponsePlan)> {
    let json = json.as_ref();
    decode(&Buffer::from(json.to_vec()), json.len(), &model(0, Vec::new()), None)
}

fn decode_binary(json: &str, tail: &[u8]) -> Result<(InferRequest, ResponsePlan)> {
    let body = Buffer::from([json.as_bytes(), tail].concat());
    decode(&body, json.len(), &model(0, Vec::new()), None)
}

/// The data of the one input of a request with this JSON data.
fn data_of(data_type: &str, shape: &str, data: &str) -> Result<Buffer> {
    let json = format!(
        r#"{{"inputs":[{{"name":"I","shape":{shape},"datatype":"{data_type}","data":{data}}}]}}"#
    );
    decode_json(json).map(|(request, _)| request.inputs[0].data.clone())
}
