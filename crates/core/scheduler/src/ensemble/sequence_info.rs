//! The sequence that a tensor of an ensemble belongs to.

use std::sync::Arc;

use galatea_types::{CorrelationId, Error, InferRequest, ParameterValue, Parameters, Result};

/// The sequence of a tensor, if the response that brought it has parameters for one.
#[derive(Clone, Debug)]
pub(super) struct SequenceInfo {
    pub correlation_id: CorrelationId,
    pub is_start: bool,
    pub is_end: bool,
}

impl SequenceInfo {
    /// Reads the sequence from the parameters of a step's response, if they name one. `requested` is the correlation id
    /// that applies if they leave it out.
    pub fn from_response(
        parameters: &Parameters,
        requested: &CorrelationId,
    ) -> Result<Option<Arc<Self>>> {
        let mut info = None;
        for (name, value) in parameters {
            let is_flag = match name.as_str() {
                "sequence_id" => false,
                "sequence_start" | "sequence_end" => true,
                _ => continue,
            };
            let info = info.get_or_insert_with(|| Self {
                correlation_id: requested.clone(),
                is_start: false,
                is_end: false,
            });
            match value {
                ParameterValue::Bool(flag) if name == "sequence_start" => info.is_start = *flag,
                ParameterValue::Bool(flag) if is_flag => info.is_end = *flag,
                ParameterValue::Int(id) if !is_flag => {
                    info.correlation_id = CorrelationId::Number(id.cast_unsigned());
                }
                ParameterValue::Uint(id) if !is_flag => {
                    info.correlation_id = CorrelationId::Number(*id);
                }
                ParameterValue::String(id) if !is_flag => {
                    info.correlation_id = CorrelationId::Text(id.clone());
                }
                _ => return Err(wrong_type(name)),
            }
        }
        Ok(info.map(Arc::new))
    }

    pub fn of_request(request: &InferRequest) -> Self {
        Self {
            correlation_id: request.correlation_id.clone(),
            is_start: request.sequence_start,
            is_end: request.sequence_end,
        }
    }

    /// Sets the sequence of a step's request.
    pub fn apply_to(&self, request: &mut InferRequest) {
        request.correlation_id = self.correlation_id.clone();
        request.sequence_start = self.is_start;
        request.sequence_end = self.is_end;
    }

    /// Returns the parameters of the ensemble's response.
    pub fn to_parameters(&self) -> Parameters {
        let id = match &self.correlation_id {
            CorrelationId::None => ParameterValue::Int(0),
            CorrelationId::Number(id) => ParameterValue::Int(id.cast_signed()),
            CorrelationId::Text(id) => ParameterValue::String(id.clone()),
        };
        vec![
            ("sequence_id".to_owned(), id),
            ("sequence_start".to_owned(), ParameterValue::Bool(self.is_start)),
            ("sequence_end".to_owned(), ParameterValue::Bool(self.is_end)),
        ]
    }
}

fn wrong_type(name: &str) -> Error {
    Error::invalid_arg(match name {
        "sequence_id" => {
            "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING"
                .to_owned()
        }
        _ => format!("expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL"),
    })
}
