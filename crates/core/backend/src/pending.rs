//! A request between the scheduler's queue and its answer.

use galatea_types::{PreparedRequest, RequestContext, Responder, Result, Tensor};

use crate::SequenceStates;

/// A request that waits to be executed, or is executed, and is answered by its batch.
#[derive(Debug)]
pub struct PendingRequest {
    /// What is asked for.
    pub request: PreparedRequest,
    /// Who waits, until when, and what has happened so far.
    pub context: RequestContext,
    /// Where the answer goes.
    pub responder: Responder,
    /// The state of the request's sequence, where the scheduler keeps one for the model; else there is none.
    pub states: SequenceStates,
    /// How many responses it has had in executions before.
    pub responses: u64,
    /// It stands for no request: it fills a row of a batch in which each sequence has its own. Its answer goes nowhere, and
    /// nothing is counted of it.
    pub is_filler: bool,
}

impl PendingRequest {
    /// One that was not executed before, without any state.
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

    /// Replaces a state of its sequence, as an output of that name does.
    ///
    /// # Errors
    /// Those of [`SequenceStates::set`].
    pub fn set_state(&mut self, tensor: Tensor) -> Result<()> {
        self.states.set(tensor, &self.request)
    }
}

/// The error of a request that a model gives back to be executed again although its configuration is not for that.
/// Triton's words.
pub const NOT_ITERATIVE: &str = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not \
                                 configured to handle such a flag.";
