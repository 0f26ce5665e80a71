//! The sequence batcher: the scheduling of a sequence's requests, its control inputs and its states.

use std::{sync::Arc, time::Duration};

use galatea_types::{DataType, Shape};

use super::TensorSpec;

/// The sequence batcher of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SequenceBatching {
    /// The strategy that selects the requests of a batch.
    pub strategy: SequenceStrategy,
    /// The idle time after which a sequence ends. Never 0.
    pub max_idle: Duration,
    /// Inputs of the model that the scheduler fills.
    pub controls: Vec<SequenceControl>,
    /// Tensors that go from one execution of a sequence to its next.
    pub states: Vec<SequenceState>,
    /// The model may ask for its request to be scheduled again.
    pub is_iterative: bool,
}

impl SequenceBatching {
    /// Returns the inputs that the scheduler adds to each request: controls, then states. The model declares them, and clients
    /// send none of them.
    pub(crate) fn added_inputs(&self) -> impl Iterator<Item = TensorSpec> {
        let controls = self.controls.iter().map(|control| {
            TensorSpec::plain(control.input.clone(), control.kind.data_type(), Shape::from([1]))
        });
        controls.chain(self.states.iter().map(|state| state.spec(&state.input)))
    }

    /// Returns the outputs of the model that become states.
    pub(crate) fn state_outputs(&self) -> impl Iterator<Item = TensorSpec> {
        self.states.iter().map(|state| state.spec(&state.output))
    }
}

impl SequenceState {
    fn spec(&self, name: &Arc<str>) -> TensorSpec {
        TensorSpec::plain(name.clone(), self.data_type, self.dims.clone())
    }
}

impl ControlKind {
    /// Returns the type of the control's tensor.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Start(values) | Self::Ready(values) | Self::End(values) => values.data_type(),
            Self::CorrelationId(data_type) => *data_type,
        }
    }
}

impl FalseTrue {
    /// Returns the type of both elements.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Int32(_) => DataType::Int32,
            Self::Fp32(_) => DataType::Fp32,
            Self::Bool(_) => DataType::Bool,
        }
    }
}

/// The strategy that selects the requests of a batch of sequences.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceStrategy {
    /// Each sequence has one slot of one instance until it ends.
    Direct {
        /// The longest time that a request waits for the other slots.
        max_queue_delay: Duration,
        /// The share of slots, 0 to 1, that must have a request before a batch runs without waiting.
        minimum_slot_utilization: f32,
    },
    /// Each sequence has one instance, which batches the oldest requests of its sequences.
    Oldest {
        /// The most active sequences of an instance.
        max_candidate_sequences: u32,
        /// As for dynamic batching: ascending, each in 1..=max_batch_size.
        preferred_batch_sizes: Vec<u32>,
        /// As for dynamic batching.
        max_queue_delay: Duration,
        /// As for dynamic batching.
        preserves_ordering: bool,
    },
}

/// An input of the model that describes the request's position in its sequence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SequenceControl {
    /// The name of the input.
    pub input: Arc<str>,
    /// The content of the input.
    pub kind: ControlKind,
}

/// The content of a control input.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlKind {
    /// True for the first request of a sequence.
    Start(FalseTrue),
    /// True for a slot with a request.
    Ready(FalseTrue),
    /// True for the last request of a sequence.
    End(FalseTrue),
    /// The correlation id of the sequence, as a tensor of this type.
    CorrelationId(DataType),
}

/// The elements that mean false and true, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FalseTrue {
    /// As INT32.
    Int32([i32; 2]),
    /// As FP32.
    Fp32([f32; 2]),
    /// As BOOL.
    Bool([bool; 2]),
}

/// An output of the model that becomes an input of the sequence's next execution.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SequenceState {
    /// The input that receives the state.
    pub input: Arc<str>,
    /// The output that returns the state.
    pub output: Arc<str>,
    /// The type of its elements.
    pub data_type: DataType,
    /// The dimensions without the batch dimension; -1 is any size.
    pub dims: Shape,
    /// The state for the first execution of a sequence; `None` for zeros.
    pub initial: Option<InitialState>,
    /// Input and output share one buffer.
    pub uses_same_buffer: bool,
}

/// The state for the first execution of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitialState {
    /// Its name in error messages.
    pub name: String,
    /// The dimensions, of fixed size; the type is that of the state.
    pub dims: Shape,
    /// The source of the elements.
    pub data: InitialData,
}

/// The source of the elements of an initial state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialData {
    /// All are 0.
    Zeros,
    /// A file in the folder `initial_state` of the model.
    File(String),
}
