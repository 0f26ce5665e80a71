//! Tensors that lie in a shared-memory region. No region can be registered yet, so whatever names one well
//! is told that it is not there.

use galatea_proto::inference::infer_parameter::ParameterChoice;
use galatea_types::{Error, Result};

use super::parameters::ParameterMap;

const REGION: &str = "shared_memory_region";
const BYTE_SIZE: &str = "shared_memory_byte_size";
const OFFSET: &str = "shared_memory_offset";

/// The region a tensor's parameters name, after their check; `None` when they name none.
pub(super) fn region_of<'p>(tensor: &str, parameters: &'p ParameterMap) -> Result<Option<&'p str>> {
    let Some(region) = parameters.get(REGION) else { return Ok(None) };
    let Some(ParameterChoice::StringParam(region)) = &region.parameter_choice else {
        return Err(wrong_type(REGION, tensor, "string_param"));
    };
    check_integer(OFFSET, tensor, parameters)?;
    if !check_integer(BYTE_SIZE, tensor, parameters)? {
        return Err(Error::invalid_arg(format!(
            "'{BYTE_SIZE}' must be specified along with '{REGION}' parameter for tensor '{tensor}'"
        )));
    }
    Ok(Some(region))
}

pub(super) fn not_found(region: &str) -> Error {
    Error::not_found(format!("Unable to find shared memory region: '{region}'"))
}

/// Whether the parameter is there.
fn check_integer(key: &str, tensor: &str, parameters: &ParameterMap) -> Result<bool> {
    match parameters.get(key).map(|p| &p.parameter_choice) {
        None => Ok(false),
        Some(Some(ParameterChoice::Int64Param(_))) => Ok(true),
        Some(_) => Err(wrong_type(key, tensor, "int64_param")),
    }
}

fn wrong_type(key: &str, tensor: &str, expected: &str) -> Error {
    Error::invalid_arg(format!(
        "invalid value type for '{key}' parameter for tensor '{tensor}', expected {expected}."
    ))
}
