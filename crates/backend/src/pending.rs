//! A request between the scheduler's queue and its answer.

use galatea_types::{PreparedRequest, RequestContext, Responder};

use crate::SequenceStates;

/// A request that waits to be executed and answered.
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
}

impl PendingRequest {
    /// Without any state.
    pub fn new(request: PreparedRequest, context: RequestContext, responder: Responder) -> Self {
        Self { request, context, responder, states: SequenceStates::default() }
    }
}
