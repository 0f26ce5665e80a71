//! The state that all calls share.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::{InFlight, RequestGuard};
use galatea_types::MemoryBudget;
use tonic::Status;

use crate::GrpcOptions;

/// The message of a refused call once the server exits.
pub(crate) const SHUTTING_DOWN: &str =
    "GRPC server is shutting down and has stopped accepting new requests.";

/// Returns `true` if three quarters of the budget are used. A stream with open requests then reads no further ones, and
/// leaves the last quarter to clients with no request in progress.
pub(crate) fn is_short_of_memory(budget: &MemoryBudget) -> bool {
    budget.used() > budget.limit() / 4 * 3
}

/// The most calls at a time that watch the health or use reflection.
const MAX_WATCHES: usize = 4096;

/// The state of a server, shared by all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: GrpcOptions,
    pub in_flight: Arc<InFlight>,
    /// Calls that end with the server or when the client ends them. The exit does not wait for them.
    pub watches: Arc<InFlight>,
    /// Open inference streams, with requests or without.
    pub streams: Arc<InFlight>,
}

impl ServerState {
    /// Counts a call that lasts as long as its client wants, until the guard is dropped.
    pub fn begin_watch(&self) -> Result<RequestGuard, Status> {
        let guard = self.watches.begin();
        if self.watches.count() <= MAX_WATCHES {
            return Ok(guard);
        }
        let text =
            format!("{MAX_WATCHES} such calls are open, the most that may be; try again later");
        Err(Status::resource_exhausted(text))
    }
}
