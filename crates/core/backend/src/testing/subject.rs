//! The models that a backend offers to the conformance tests, and the clauses of these tests.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_config::ModelConfig;
use galatea_types::{DataType, InferRequest};

use crate::Backend;

/// A model for tests. The tests read names, types and dimensions from the configuration, and choose sizes themselves for
/// dimensions of -1.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// The checked configuration of the model.
    pub config: ModelConfig,
    /// The folder that has its versions.
    pub model_dir: PathBuf,
    /// The version to load.
    pub version: i64,
    /// Settings of the command line.
    pub backend_config: BTreeMap<String, String>,
}

impl Fixture {
    /// Creates a fixture for version 1 in `model_dir`, without backend settings.
    pub fn new(config: ModelConfig, model_dir: impl Into<PathBuf>) -> Self {
        let model_dir = model_dir.into();
        Self { config, model_dir, version: 1, backend_config: BTreeMap::new() }
    }
}

/// A backend under test.
pub trait Subject: Sync {
    /// Returns the opened backend.
    fn backend(&self) -> Arc<dyn Backend>;

    /// Returns a model whose first output is its first input. Best with a `max_batch_size` of 4 or more and a variable
    /// dimension. `None` if this type is not supported.
    fn identity(&self, data_type: DataType) -> Option<Fixture>;

    /// Returns a model of two inputs whose first output is their sum and whose second is their difference.
    fn add_sub(&self, data_type: DataType) -> Option<Fixture>;

    /// Returns a decoupled model without batching, with the tensors of the built-in backend `repeat`. Inputs are `IN` of the
    /// type asked for, `DELAY` (UINT32) and `WAIT` (UINT32, one element). Outputs are `OUT` of the type and `IDX` (UINT32), one
    /// element each. It answers each element of `IN` after as many milliseconds as `DELAY` has at that index, with `IDX`
    /// counting from 0, and then ends the stream without another response. A cancelled request ends early; one whose instance
    /// is dropped ends with an error. `execute` returns after `WAIT` milliseconds.
    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        let _ = data_type;
        None
    }

    /// Ends the process of the instance with this name, like a crash. Returns false if there is none.
    fn kill(&self, instance: &str) -> bool {
        let _ = instance;
        false
    }

    /// Returns a model that cannot be loaded, and the file name that the error must have.
    fn broken(&self) -> Option<(Fixture, String)>;

    /// Returns the tolerance of floating point results.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// Returns the clauses that this backend does not keep. List each with its reason.
    fn ignores(&self) -> &[Clause] {
        &[]
    }

    /// Changes a request to one that this backend must refuse. By default its data is cut short.
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
    /// Requests joined in a batch get the same responses as alone, with items counted per request.
    JoinedRequests,
    /// Only the requested outputs are returned.
    RequestedOutputs,
    /// The largest batch of large tensors is answered.
    LargeBatch,
    /// A tensor with a dimension of size 0 is accepted.
    EmptyTensor,
    /// A request that does not fit the model gets an error.
    BadRequestFails,
    /// The other requests in the batch are still answered.
    BadRequestAlone,
    /// Several instances of one model execute at the same time.
    ConcurrentInstances,
    /// An instance may be dropped unused, and another created afterwards.
    DropWhileIdle,
    /// States that a request leaves are there for the next one of its sequence.
    KeptStates,
    /// Loading an invalid model fails, and the error names the file.
    BrokenModel,
    /// A decoupled model sends the right responses in order, and one end.
    StreamInOrder,
    /// A stream without a response has an end.
    EmptyStream,
    /// Several streams of one instance run at the same time, also after their executions returned.
    StreamsSideBySide,
    /// A cancelled stream ends early.
    CancelledStream,
    /// A dropped instance ends its streams.
    DropWhileStreaming,
    /// A killed instance raises its alarm and fails its requests, and another can be created.
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
