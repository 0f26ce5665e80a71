use galatea_proto::inference::{ModelInferResponse, model_infer_response::InferOutputTensor};
use galatea_types::{Error, InferResponse, Result};
use prost::Message as _;

use super::parameters::parameter_message;

/// The message of a response. Every output goes out raw (G-34); its buffer is shared, not copied.
///
/// # Errors
/// An output that is not in host memory.
pub fn encode(response: InferResponse) -> Result<ModelInferResponse> {
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut raw_output_contents = Vec::with_capacity(response.outputs.len());
    for tensor in response.outputs {
        outputs.push(InferOutputTensor {
            name: tensor.name.as_ref().to_owned(),
            datatype: tensor.data_type.protocol_name().to_owned(),
            shape: tensor.shape.to_vec(),
            ..InferOutputTensor::default()
        });
        raw_output_contents.push(tensor.host_bytes()?.clone());
    }
    Ok(ModelInferResponse {
        model_name: response.model_name.as_ref().to_owned(),
        model_version: response.model_version.to_string(),
        id: response.id,
        parameters: response
            .parameters
            .into_iter()
            .map(|(key, value)| (key, parameter_message(value)))
            .collect(),
        outputs,
        raw_output_contents,
    })
}

/// Refuses a message longer than `limit` bytes, which a client could not receive (G-62).
pub fn check_message_size(message: &ModelInferResponse, limit: usize) -> Result<()> {
    let size = message.encoded_len();
    if size <= limit {
        return Ok(());
    }
    Err(Error::invalid_arg(format!(
        "Response has byte size {size} which exceeds gRPC's byte size limit {limit}."
    )))
}
