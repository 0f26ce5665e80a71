//! What all calls share.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::InFlight;

use crate::GrpcOptions;

/// What a call is refused with once the server exits.
pub(crate) const SHUTTING_DOWN: &str =
    "GRPC server is shutting down and has stopped accepting new requests.";

/// One per server, for all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: GrpcOptions,
    pub in_flight: Arc<InFlight>,
}
