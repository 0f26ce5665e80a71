//! One step: an object with a tensor under the name of each input or output.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    super::dataset::TensorData,
    UnreadMembers,
    error::{JsonError, StepError},
    expected_tensor::ExpectedTensor,
    members,
    tensor::read_tensor,
};

/// The position of a step in the data.
pub(super) struct StepReader {
    pub stream: usize,
    pub step: usize,
}

/// A name in data files that is not a tensor: the model a step is meant for.
const MODEL: &str = "model";

impl StepReader {
    /// Reads a step in the order of `wanted`; `None` for an optional tensor that is absent.
    pub fn read(
        &self,
        step: &RawValue,
        wanted: &[ExpectedTensor<'_>],
    ) -> Result<Vec<Option<TensorData>>, JsonError> {
        let members = members(step).ok_or_else(|| self.at(StepError::Malformed, None))?;
        let tensors: Result<Vec<_>, _> =
            wanted.iter().map(|wanted| self.tensor(&members, wanted)).collect();
        let tensors = tensors?;
        let is_known =
            |name: &String| name == MODEL || wanted.iter().any(|wanted| wanted.name == name);
        match members.keys().find(|name| !is_known(name)) {
            Some(name) => Err(self.at(StepError::Unknown(name.clone()), None)),
            None => Ok(tensors),
        }
    }

    fn tensor(
        &self,
        members: &UnreadMembers<'_>,
        wanted: &ExpectedTensor<'_>,
    ) -> Result<Option<TensorData>, JsonError> {
        match members.get(wanted.name) {
            Some(tensor) => {
                let (shape, data) = read_tensor(tensor, wanted)
                    .map_err(|error| self.at(error.into(), Some(wanted.name)))?;
                Ok(Some(TensorData { shape, data: Bytes::from(data) }))
            }
            None if wanted.optional => Ok(None),
            None => Err(self.at(StepError::Missing(wanted.name.to_owned()), None)),
        }
    }

    fn at(&self, reason: StepError, tensor: Option<&str>) -> JsonError {
        let (stream, step) = (self.stream, self.step);
        JsonError::Step { stream, step, tensor: tensor.map(str::to_owned), reason }
    }
}
