//! Everything under way with one worker, in one place to fail it together.

use galatea_types::Error;

use crate::in_flight::{calls::BlsCalls, readiness::ReadinessQueries, requests::ActiveRequests};

/// Requests, calls and queries that are not answered yet.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Requests that the worker executes.
    pub requests: ActiveRequests,
    /// Requests of the worker to other models.
    pub calls: BlsCalls,
    /// Readiness queries to the worker's model.
    pub readiness: ReadinessQueries,
}

impl InFlight {
    /// The worker is gone: its requests fail with `error`, its calls are cancelled, its queries end unanswered.
    pub fn fail_all(&self, error: &Error) {
        self.requests.fail_all(error);
        self.calls.cancel_all();
        self.readiness.close();
    }
}
