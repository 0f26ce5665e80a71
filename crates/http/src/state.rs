//! What the handlers of requests share.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_frontend::InFlight;

use crate::HttpOptions;

/// One per server, for all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: HttpOptions,
    pub in_flight: Arc<InFlight>,
}

impl ServerState {
    pub fn is_live(&self) -> bool {
        !self.in_flight.is_closed() && self.engine.is_live()
    }
}
