//! The parameters that place a tensor in a shared memory region.

use galatea_types::{RegionSpan, Regions};

use super::{
    decode_error::{DecodeError, Result},
    parameters::{ParameterChoice, ParameterMap},
};

const REGION: &str = "shared_memory_region";
const BYTE_SIZE: &str = "shared_memory_byte_size";
const OFFSET: &str = "shared_memory_offset";

/// The region that a tensor's parameters name, and the part of it.
pub(super) struct RegionParameters<'p> {
    region: &'p str,
    offset: i64,
    byte_size: i64,
}

impl<'p> RegionParameters<'p> {
    /// Returns `None` if the parameters of the tensor name no region. Then they must not name a part of one either.
    pub fn read(tensor: &str, parameters: &ParameterMap<'p>) -> Result<Option<Self>> {
        let Some(region) = parameters.get(REGION) else {
            return match [OFFSET, BYTE_SIZE].into_iter().find(|key| parameters.get(key).is_some()) {
                None => Ok(None),
                Some(key) => Err(DecodeError::WithoutRegion { key, tensor: tensor.to_owned() }),
            };
        };
        let Some(ParameterChoice::Text(region)) = region else {
            return Err(wrong_type(REGION, tensor, "string_param"));
        };
        let offset = integer(OFFSET, tensor, parameters)?.unwrap_or(0);
        let byte_size = integer(BYTE_SIZE, tensor, parameters)?
            .ok_or_else(|| DecodeError::RegionWithoutSize { tensor: tensor.to_owned() })?;
        Ok(Some(Self { region, offset, byte_size }))
    }

    /// Returns the span. Fails if the region does not exist or is too short.
    pub fn span(&self, regions: &dyn Regions) -> Result<RegionSpan> {
        // The message has no unsigned numbers: a negative number is as far out of range as a huge one.
        let (offset, byte_size) = (self.offset.cast_unsigned(), self.byte_size.cast_unsigned());
        Ok(RegionSpan::new(regions.find(self.region)?, offset, byte_size)?)
    }
}

fn integer(key: &'static str, tensor: &str, parameters: &ParameterMap<'_>) -> Result<Option<i64>> {
    match parameters.get(key) {
        None => Ok(None),
        Some(Some(ParameterChoice::Int64(value))) => Ok(Some(value)),
        Some(_) => Err(wrong_type(key, tensor, "int64_param")),
    }
}

fn wrong_type(key: &'static str, tensor: &str, expected: &'static str) -> DecodeError {
    DecodeError::RegionParameterType { key, tensor: tensor.to_owned(), expected }
}
