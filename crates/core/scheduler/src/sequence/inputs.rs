//! The inputs that a scheduler adds to requests of sequences, and the content of a batch row without a request.

use std::{sync::Arc, time::Instant};

use galatea_backend::{PendingRequest, SequenceState, SequenceStates, StateMemory};
use galatea_config::{ControlKind, FalseTrue, ModelConfig, SequenceBatching, SequenceControl};
use galatea_types::{
    AlignedBlock, Buffer, CorrelationId, DataType, PreparedRequest, RequestContext, Responder,
    Shape, Tensor, byte_strings,
};

/// The inputs that a scheduler adds to the requests of a model.
pub(crate) struct SequenceInputs {
    /// `[1]`, with a batch dimension if the model has one.
    shape: Shape,
    flags: Vec<(Flag, [Tensor; 2])>,
    /// The inputs that get the correlation id, each with its type.
    ids: Vec<(Arc<str>, DataType)>,
    initial: SequenceStates,
    is_iterative: bool,
}

/// Makes batch rows without a request.
pub(crate) struct Filler {
    request: PreparedRequest,
    /// The states of such a row. The model returns states for every row; these are discarded.
    states: SequenceStates,
}

impl Filler {
    /// Returns one row for a batch that is made now.
    pub fn pending(&self, now: Instant) -> PendingRequest {
        let mut context = RequestContext::received_at(now);
        context.timeline.queued = Some(now);
        let pending = PendingRequest::new(self.request.clone(), context, Responder::spent());
        PendingRequest { states: self.states.clone(), is_filler: true, ..pending }
    }
}

#[derive(Clone, Copy)]
enum Flag {
    Start,
    Ready,
    End,
}

impl SequenceInputs {
    /// Creates the inputs. `initial_states` are the initial values of the states with their batch dimension, in
    /// the order of the configuration. `memory` counts the states that replace them.
    pub fn new(
        config: &ModelConfig,
        batching: &SequenceBatching,
        initial_states: Vec<Tensor>,
        memory: Arc<dyn StateMemory>,
    ) -> Self {
        let shape = match config.has_batching() {
            true => Shape::from([1, 1]),
            false => Shape::from([1]),
        };
        let state = |(state, value): (&galatea_config::SequenceState, Tensor)| SequenceState {
            output: state.output.clone(),
            is_returned: config.output(&state.output).is_some(),
            value,
        };
        let flags = batching.controls.iter().filter_map(|control| flag(control, &shape));
        let ids = batching.controls.iter().filter_map(|control| match control.kind {
            ControlKind::CorrelationId(data_type) => Some((control.input.clone(), data_type)),
            _ => None,
        });
        Self {
            flags: flags.collect(),
            ids: ids.collect(),
            initial: SequenceStates::new(
                batching.states.iter().zip(initial_states).map(state).collect(),
            )
            .counted_by(memory),
            shape,
            is_iterative: batching.is_iterative,
        }
    }

    /// Returns true if the server keeps states of the model's sequences.
    pub fn has_states(&self) -> bool {
        !self.initial.is_empty()
    }

    /// Returns true if the model may have its request executed again.
    pub fn is_iterative(&self) -> bool {
        self.is_iterative
    }

    /// Returns the data type that the model wants for correlation ids if it cannot take this one.
    pub fn unfit_for(&self, id: &CorrelationId) -> Option<DataType> {
        let misses = |data_type: DataType| match (id, data_type) {
            (_, DataType::Bytes) | (CorrelationId::None, _) => false,
            (CorrelationId::Text(_), _) => true,
            (CorrelationId::Number(number), DataType::Int32) => i32::try_from(*number).is_err(),
            (CorrelationId::Number(number), DataType::Uint32) => u32::try_from(*number).is_err(),
            (CorrelationId::Number(number), DataType::Int64) => i64::try_from(*number).is_err(),
            (CorrelationId::Number(_), _) => false,
        };
        self.ids.iter().map(|(_, data_type)| *data_type).find(|&data_type| misses(data_type))
    }

    /// Adds the sequence inputs and states to the request of a step.
    pub fn complete(&self, pending: &mut PendingRequest, states: SequenceStates, is_first: bool) {
        pending.states = if is_first { self.initial.clone() } else { states };
        let request = &mut pending.request;
        let value = |flag| match flag {
            Flag::Start => is_first,
            Flag::Ready => true,
            Flag::End => request.sequence_end,
        };
        let controls = self.controls(value, &request.correlation_id);
        let states = pending.states.inputs().cloned();
        request.add_inputs(controls.into_iter().chain(states));
    }

    /// Removes the added inputs from a request that is executed once more.
    pub fn strip(&self, pending: &mut PendingRequest) {
        let own = self.own_inputs(pending);
        pending.request.truncate_inputs(own);
    }

    /// Returns the number of the client's inputs in a complete request. They come first.
    fn own_inputs(&self, pending: &PendingRequest) -> usize {
        let added = self.flags.len() + self.ids.len() + self.initial.inputs().count();
        pending.request.inputs.len().saturating_sub(added)
    }

    /// Returns the maker of batch rows without a request, with the shapes of `template`, which is complete.
    pub fn filler(&self, template: &PendingRequest) -> Filler {
        let inputs = template.request.inputs.iter().take(self.own_inputs(template)).map(zeros);
        let states = template.states.inputs().map(zeros);
        let controls = self.controls(|_| false, &CorrelationId::None);
        Filler {
            request: template.request.stand_in(inputs.chain(controls).chain(states).collect()),
            states: template.states.uncounted(),
        }
    }

    fn controls(&self, value: impl Fn(Flag) -> bool, id: &CorrelationId) -> Vec<Tensor> {
        let flags =
            self.flags.iter().map(|(flag, tensors)| tensors[usize::from(value(*flag))].clone());
        let ids = self.ids.iter().map(|(name, data_type)| Tensor {
            name: name.clone(),
            data_type: *data_type,
            shape: self.shape.clone(),
            data: id_data(id, *data_type),
        });
        flags.chain(ids).collect()
    }
}

fn flag(control: &SequenceControl, shape: &Shape) -> Option<(Flag, [Tensor; 2])> {
    let (flag, values) = match control.kind {
        ControlKind::Start(values) => (Flag::Start, values),
        ControlKind::Ready(values) => (Flag::Ready, values),
        ControlKind::End(values) => (Flag::End, values),
        ControlKind::CorrelationId(_) => return None,
    };
    let data = match values {
        FalseTrue::Int32(values) => values.map(|value| value.to_le_bytes().to_vec()),
        FalseTrue::Fp32(values) => values.map(|value| value.to_le_bytes().to_vec()),
        FalseTrue::Bool(values) => values.map(|value| vec![u8::from(value)]),
    };
    let tensor = |data: Vec<u8>| Tensor {
        name: control.input.clone(),
        data_type: values.data_type(),
        shape: shape.clone(),
        data: aligned(&data),
    };
    Some((flag, data.map(tensor)))
}

/// Returns the correlation id as one element. A number is converted to another width if it fits, or to text if text is
/// wanted. Without an id the element is 0 or the empty text.
fn id_data(id: &CorrelationId, data_type: DataType) -> Buffer {
    if data_type == DataType::Bytes {
        let text = match id {
            CorrelationId::None => String::new(),
            id => id.to_string(),
        };
        // Packing cannot fail, because a correlation id is short.
        return byte_strings::pack(&[text]).unwrap_or_else(|_| aligned(&[0; 4]));
    }
    let number = match id {
        CorrelationId::Number(number) => *number,
        CorrelationId::None | CorrelationId::Text(_) => 0,
    };
    // Little-endian, so the first bytes are the narrow number.
    let bytes = number.to_le_bytes();
    aligned(&bytes[..data_type.byte_size().unwrap_or(bytes.len()).min(bytes.len())])
}

fn aligned(data: &[u8]) -> Buffer {
    let mut block = AlignedBlock::with_capacity(data.len());
    block.extend_from_slice(data);
    block.freeze()
}

/// Returns a tensor of the same shape, all of whose elements are 0 or empty.
fn zeros(tensor: &Tensor) -> Tensor {
    let element = tensor.data_type.byte_size().unwrap_or(size_of::<u32>());
    let length = tensor.shape.element_count().unwrap_or(0).saturating_mul(element);
    let mut block = AlignedBlock::with_capacity(length);
    block.extend_zeroed(length);
    Tensor { data: block.freeze(), ..tensor.clone() }
}
