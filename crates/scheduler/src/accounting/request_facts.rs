//! What is counted and logged of a request, so that this can be done after the request itself is gone.

use std::time::Instant;

use galatea_types::InferRequest;

/// What is counted and logged of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    /// The client's; empty when it gave none.
    pub id: &'a str,
    pub received_at: Instant,
    /// A step of an ensemble.
    pub is_step: bool,
}

impl<'a> RequestFacts<'a> {
    pub fn of(request: &'a InferRequest) -> Self {
        Self {
            id: &request.id,
            received_at: request.received_at,
            is_step: request.step_times.is_some(),
        }
    }
}
