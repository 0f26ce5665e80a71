//! What a backend gives the conformance kit, and the clauses it is checked against.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_config::ModelConfig;
use galatea_types::{DataType, InferRequest};

use crate::Backend;

/// A model to test with. The kit reads names, types and dimensions from the configuration; it puts sizes
/// of its own choice where a dimension is -1.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Of the model, as checked.
    pub config: ModelConfig,
    /// Where its versions lie.
    pub model_dir: PathBuf,
    /// The version to load.
    pub version: i64,
    /// Settings of the command line.
    pub backend_config: BTreeMap<String, String>,
}

impl Fixture {
    /// Version 1 in `model_dir`, without backend settings.
    pub fn new(config: ModelConfig, model_dir: impl Into<PathBuf>) -> Self {
        let model_dir = model_dir.into();
        Self { config, model_dir, version: 1, backend_config: BTreeMap::new() }
    }
}

/// A backend under test.
pub trait Subject: Sync {
    /// The backend, opened.
    fn backend(&self) -> Arc<dyn Backend>;

    /// A model whose first output is its first input. Best with `max_batch_size` of 4 or more and a
    /// variable dimension. `None`: not supported for this type.
    fn identity(&self, data_type: DataType) -> Option<Fixture>;

    /// A model of two inputs whose first output is their sum and whose second is their difference.
    fn add_sub(&self, data_type: DataType) -> Option<Fixture>;

    /// A decoupled model without batching, with the tensors of the built-in backend `repeat`: inputs `IN`
    /// of the type asked for, `DELAY` (UINT32) and `WAIT` (UINT32, one element), outputs `OUT` of the type
    /// and `IDX` (UINT32), one element each. It answers each element of `IN` after as many milliseconds as
    /// `DELAY` has at that index, `IDX` counting from 0, and then ends the stream without another response. A
    /// cancelled request ends early, one whose instance goes with an error. `execute` returns after `WAIT`
    /// milliseconds.
    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        let _ = data_type;
        None
    }

    /// Ends what the instance of this name runs in, as a crash would. False: there is no such thing.
    fn kill(&self, instance: &str) -> bool {
        let _ = instance;
        false
    }

    /// A model that cannot be loaded, and what the error must name (the file).
    fn broken(&self) -> Option<(Fixture, String)>;

    /// How far a floating point result may be off.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// Clauses this backend does not keep; say why where you list them.
    fn ignores(&self) -> &[Clause] {
        &[]
    }

    /// Makes a request one that this backend must refuse. By default its data is cut short.
    fn spoil(&self, request: &mut InferRequest) {
        if let Some(tensor) = request.inputs.first_mut() {
            let half = tensor.data.len() / 2;
            tensor.data = tensor.data.slice(0..half).unwrap_or_default();
        }
    }
}

/// One rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// One request is answered with the right tensors, types and shapes.
    SingleRequest,
    /// Requests joined in a batch get the answers they get alone, items counted per request.
    JoinedRequests,
    /// Only the outputs asked for are answered.
    RequestedOutputs,
    /// The largest batch of large tensors.
    LargeBatch,
    /// A tensor with a dimension of size 0.
    EmptyTensor,
    /// A request that does not fit the model gets an error.
    BadRequestFails,
    /// The requests beside it in the batch are answered all the same.
    BadRequestAlone,
    /// Several instances of one model execute at the same time.
    ConcurrentInstances,
    /// An instance may be dropped unused, and another made afterwards.
    DropWhileIdle,
    /// What a request leaves as state of its sequence is there for the next one.
    KeptStates,
    /// Loading a model that is not one fails and names the file.
    BrokenModel,
    /// A decoupled model answers with the right responses in order, and one end.
    StreamInOrder,
    /// A stream without a response has an end.
    EmptyStream,
    /// Several streams of one instance go on at the same time, also after their executions returned.
    StreamsSideBySide,
    /// A cancelled stream ends before its time.
    CancelledStream,
    /// An instance that goes ends its streams.
    DropWhileStreaming,
    /// An instance that was killed raises its alarm, fails what it is given, and another can be made.
    KilledInstance,
}

impl Clause {
    /// Every clause.
    pub const ALL: [Clause; 17] = [
        Clause::SingleRequest,
        Clause::JoinedRequests,
        Clause::RequestedOutputs,
        Clause::LargeBatch,
        Clause::EmptyTensor,
        Clause::BadRequestFails,
        Clause::BadRequestAlone,
        Clause::ConcurrentInstances,
        Clause::DropWhileIdle,
        Clause::KeptStates,
        Clause::BrokenModel,
        Clause::StreamInOrder,
        Clause::EmptyStream,
        Clause::StreamsSideBySide,
        Clause::CancelledStream,
        Clause::DropWhileStreaming,
        Clause::KilledInstance,
    ];

    pub(super) fn is_about_streams(self) -> bool {
        matches!(
            self,
            Self::StreamInOrder
                | Self::EmptyStream
                | Self::StreamsSideBySide
                | Self::CancelledStream
                | Self::DropWhileStreaming
        )
    }
}
