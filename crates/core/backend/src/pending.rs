//! A request between the scheduler's queue and its response.

use galatea_types::{PreparedRequest, RequestContext, Responder, Result, Tensor};

use crate::SequenceStates;

/// A request that waits or is executed. Its batch answers it.
#[derive(Debug)]
pub struct PendingRequest {
    /// The request.
    pub request: PreparedRequest,
    /// The client, the deadline and the times so far.
    pub context: RequestContext,
    /// The receiver of the responses.
    pub responder: Responder,
    /// The states of the request's sequence; empty if the scheduler keeps none for the model.
    pub states: SequenceStates,
    /// The number of responses from earlier executions.
    pub responses: u64,
    /// True for a request that only fills a row of a batch in which each sequence has its own row. Its response is dropped, and
    /// it is not counted.
    pub is_filler: bool,
}

impl PendingRequest {
    /// Creates a request that was not executed before and has no state.
    pub fn new(request: PreparedRequest, context: RequestContext, responder: Responder) -> Self {
        Self {
            request,
            context,
            responder,
            states: SequenceStates::default(),
            responses: 0,
            is_filler: false,
        }
    }

    /// Replaces a state of its sequence, like an output with that name.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub fn set_state(&mut self, tensor: Tensor) -> Result<()> {
        self.states.set(tensor, &self.request)
    }
}

/// The error of a request that a model returns for another execution although its configuration does not allow that, in
/// Triton's words.
pub const NOT_ITERATIVE: &str = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not \
                                 configured to handle such a flag.";
