//! What all calls share.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::{InFlight, RequestGuard};
use galatea_types::MemoryBudget;
use tonic::Status;

use crate::GrpcOptions;

/// What a call is refused with once the server exits.
pub(crate) const SHUTTING_DOWN: &str =
    "GRPC server is shutting down and has stopped accepting new requests.";

/// Whether so much of the budget is used that what need not be read yet is not read: requests behind others of their
/// stream. The last quarter is for those that have nothing in hand.
pub(crate) fn is_short_of_memory(budget: &MemoryBudget) -> bool {
    budget.used() > budget.limit() / 4 * 3
}

/// Calls that watch the health or ask for descriptions, of which there may be so many at a time.
const MAX_WATCHES: usize = 4096;

/// One per server, for all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: GrpcOptions,
    pub in_flight: Arc<InFlight>,
    /// Calls that end with the server or at the client's wish, so that the exit does not wait for them.
    pub watches: Arc<InFlight>,
    /// Streams of inferences that are open, whether they have requests or not.
    pub streams: Arc<InFlight>,
}

impl ServerState {
    /// Counts a call that lasts as long as its client wants, until the guard is dropped.
    pub fn begin_watch(&self) -> Result<RequestGuard, Status> {
        let guard = self.watches.begin();
        if self.watches.count() <= MAX_WATCHES {
            return Ok(guard);
        }
        let text = format!("{MAX_WATCHES} such calls are open, as many as may be; try again later");
        Err(Status::resource_exhausted(text))
    }
}
