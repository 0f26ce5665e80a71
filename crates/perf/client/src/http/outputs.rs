//! The tensors of an inference response: a JSON header, followed by binary data.

use bytes::Bytes;
use galatea_types::{DataType, Result};
use serde::Deserialize;
use serde_json::Value;

use super::json_data;
use crate::{OutputTensor, response_error::ResponseError};

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    name: String,
    datatype: String,
    #[serde(default)]
    shape: Vec<i64>,
    #[serde(default)]
    parameters: Parameters,
    data: Option<Value>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    binary_data_size: Option<usize>,
}

/// Returns the outputs; their binary data are slices of the body. `header_length`: length of the JSON, if data follows.
pub(super) fn decode(body: Bytes, header_length: Option<usize>) -> Result<Vec<OutputTensor>> {
    let header_length = header_length.unwrap_or(body.len());
    let length = body.len();
    let json =
        body.get(..header_length).ok_or(ResponseError::HeaderLength { header_length, length })?;
    let header: Header = serde_json::from_slice(json).map_err(ResponseError::Json)?;
    let mut binary = body.slice(header_length..);
    header.outputs.into_iter().map(|output| tensor(output, &mut binary)).collect()
}

/// Takes the tensor's binary data, if it has any, from the front of `binary`.
fn tensor(output: Output, binary: &mut Bytes) -> Result<OutputTensor> {
    let Output { name, datatype, shape, parameters, data } = output;
    let data_type = DataType::from_protocol_name(&datatype)
        .ok_or_else(|| ResponseError::DataType { output: name.clone(), data_type: datatype })?;
    let data = match (parameters.binary_data_size, data) {
        (Some(size), _) if size <= binary.len() => binary.split_to(size),
        (Some(size), _) => {
            let left = binary.len();
            return Err(ResponseError::DataSize { output: name, size, left }.into());
        }
        (None, Some(data)) => json_data::read(&name, data_type, &data)?.into(),
        // The output is in a shared memory region.
        (None, None) => Bytes::new(),
    };
    Ok(OutputTensor { name, data_type, shape, data })
}
