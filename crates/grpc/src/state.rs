//! What all calls share.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::InFlight;
use galatea_types::MemoryBudget;

/// What a call is refused with once the server exits.
pub(crate) const SHUTTING_DOWN: &str =
    "GRPC server is shutting down and has stopped accepting new requests.";

/// One per server, for all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    /// Of the messages that come, in bytes.
    pub max_message_size: usize,
    /// Of the messages that go, in bytes.
    pub max_response_size: usize,
    /// Of the responses that wait on one stream, in bytes.
    pub max_unread: usize,
    /// Of the whole server, for requests and responses.
    pub memory: Arc<MemoryBudget>,
    pub in_flight: Arc<InFlight>,
}
