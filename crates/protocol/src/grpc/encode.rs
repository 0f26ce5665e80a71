//! The message of a response.

use galatea_proto::inference::{ModelInferResponse, model_infer_response::InferOutputTensor};
use galatea_types::{InferResponse, Result};
use prost::Message as _;

use super::parameters::parameter_message;
use crate::{answer_form::AnswerPlan, encode_error::EncodeError};

/// The message of a response, as the client asked for it. Every output goes out raw; its buffer is shared, not copied.
/// `label` gives the text of a class of an output.
///
/// # Errors
/// An output that is not in host memory, cannot be classified, or does not fit its region.
pub fn encode<'a>(
    response: InferResponse,
    plan: &AnswerPlan,
    label: impl Fn(&str, usize) -> Option<&'a str>,
) -> Result<ModelInferResponse> {
    let mut outputs = Vec::with_capacity(response.outputs.len());
    let mut raw_output_contents = Vec::with_capacity(response.outputs.len());
    for tensor in &response.outputs {
        let tensor = plan.form_of(&tensor.name).apply(tensor, plan.is_batched, &label)?;
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
        // One of each output, for clients count them: empty where the data is in shared memory.
        raw_output_contents,
    })
}

/// Refuses a message longer than `limit` bytes, which a client could not receive.
pub fn check_message_size(message: &ModelInferResponse, limit: usize) -> Result<()> {
    let size = message.encoded_len();
    if size <= limit {
        return Ok(());
    }
    Err(EncodeError::MessageTooLong { size, limit }.into())
}
