//! A response in the form that a cache stores.

use std::sync::Arc;

use galatea_types::{
    AlignedBlock, BUFFER_ALIGNMENT, InferResponse, ParameterValue, Parameters, Tensor,
};

/// Overhead of an entry in bytes: its place in the table and the list, rounded up.
const PER_ENTRY: usize = 192;

/// Overhead of an output in bytes, beside its bytes, name and dimensions.
const PER_OUTPUT: usize = size_of::<Tensor>() + 32;

/// A response without the parts that differ between equal requests. Cloning copies nothing.
///
/// The bytes of all outputs are in one block of their own, so that the size of an entry is its real cost. The tensors of a
/// response may be parts of a batch, or of memory that a client can write.
#[derive(Clone, Debug)]
pub struct Entry(Arc<StoredEntry>);

#[derive(Debug)]
struct StoredEntry {
    outputs: Vec<Tensor>,
    parameters: Parameters,
    byte_size: usize,
}

impl Entry {
    /// Copies a response; `None` when the host cannot read an output.
    pub fn of(response: &InferResponse) -> Option<Self> {
        Self::copy(&response.outputs, response.parameters.clone())
    }

    /// Returns the bytes that an entry of this response would take.
    pub fn size_of(response: &InferResponse) -> usize {
        let block = response.outputs.iter().map(|output| padded(output.data.len())).sum();
        byte_size(block, &response.outputs, &response.parameters)
    }

    pub(crate) fn copy(outputs: &[Tensor], parameters: Parameters) -> Option<Self> {
        let length = outputs.iter().map(|output| padded(output.data.len())).sum();
        let mut block = AlignedBlock::with_capacity(length);
        let mut places = Vec::with_capacity(outputs.len());
        for output in outputs {
            let start = block.len();
            block.extend_from_slice(output.data.host().ok()?);
            places.push(start..block.len());
            block.extend_zeroed(padded(output.data.len()) - output.data.len());
        }
        let block = block.freeze();
        let kept = outputs.iter().zip(places).map(|(output, place)| {
            let data = block.slice(place).unwrap_or_default();
            Tensor { data, ..output.clone() }
        });
        let outputs: Vec<Tensor> = kept.collect();
        let byte_size = byte_size(length, &outputs, &parameters);
        Some(Self(Arc::new(StoredEntry { outputs, parameters, byte_size })))
    }

    /// Returns the bytes that it takes in a cache, with the overhead of the cache.
    pub fn byte_size(&self) -> usize {
        self.0.byte_size
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[Tensor] {
        &self.0.outputs
    }

    /// Returns the values that the model returned beside its outputs.
    pub fn parameters(&self) -> &Parameters {
        &self.0.parameters
    }

    /// Makes the response to a request with this id to this model.
    pub fn response(&self, model_name: Arc<str>, model_version: i64, id: String) -> InferResponse {
        let StoredEntry { outputs, parameters, .. } = &*self.0;
        InferResponse {
            model_name,
            model_version,
            id,
            parameters: parameters.clone(),
            outputs: outputs.clone(),
        }
    }
}

/// Rounds a length up so that each output is aligned for compute libraries: the step of an ensemble may read it.
fn padded(length: usize) -> usize {
    length.next_multiple_of(BUFFER_ALIGNMENT)
}

fn byte_size(block: usize, outputs: &[Tensor], parameters: &Parameters) -> usize {
    let of_output = |output: &Tensor| PER_OUTPUT + output.name.len() + 8 * output.shape.len();
    let outputs: usize = outputs.iter().map(of_output).sum();
    let parameters: usize = parameters.iter().map(of_parameter).sum();
    block + BUFFER_ALIGNMENT + outputs + parameters + PER_ENTRY
}

fn of_parameter((name, value): &(String, ParameterValue)) -> usize {
    let text = if let ParameterValue::String(text) = value { text.len() } else { 0 };
    size_of::<(String, ParameterValue)>() + name.len() + text
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use galatea_types::DataType;

    use super::*;

    #[test]
    fn an_entry_copies_its_outputs_and_reports_its_size() {
        let batch = Bytes::from((0..=255).collect::<Vec<u8>>());
        let outputs = vec![
            Tensor::new("A", DataType::Uint8, [3], batch.slice(1..4)),
            Tensor::new("B", DataType::Uint8, [0], batch.slice(4..4)),
            Tensor::new("C", DataType::Uint8, [2, 2], batch.slice(100..104)),
        ];
        let parameters = vec![("p".to_owned(), ParameterValue::String("text".to_owned()))];
        let response = InferResponse {
            model_name: "m".into(),
            model_version: 3,
            id: "7".to_owned(),
            parameters,
            outputs,
        };
        let entry = Entry::of(&response).expect("in host memory");
        assert_eq!(entry.byte_size(), Entry::size_of(&response));
        let again = entry.response("m".into(), 3, "8".to_owned());
        assert_eq!(
            (again.outputs, again.parameters),
            (response.outputs.clone(), response.parameters)
        );
        assert_eq!((&*again.model_name, again.model_version, &*again.id), ("m", 3, "8"));
        for (kept, given) in entry.outputs().iter().zip(&response.outputs) {
            assert!(kept.data.is_empty() || kept.data.is_aligned_to(BUFFER_ALIGNMENT));
            assert!(!kept.data.is_same_memory(&given.data));
        }
    }
}
