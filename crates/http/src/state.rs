//! What the handlers of requests share.

use std::sync::{Arc, Mutex};

use galatea_console::Console;
use galatea_engine::Engine;
use galatea_frontend::{Client, Closing, ConnectionAccount, InFlight};
use galatea_protocol::http::LastHeader;
use galatea_types::{InferRequest, Result};

use crate::{
    HttpOptions,
    body_error::SizeLimit,
    wire::{RequestHeaders, Wire},
};

/// One per server, for all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: HttpOptions,
    pub in_flight: Arc<InFlight>,
    /// Where there is one.
    pub console: Option<Console>,
    /// The media type that says where the JSON of a body ends, up to the number. `None`: a header says it.
    pub binary_media_type: Option<&'static str>,
    /// Whether answers say it by that media type too.
    pub answers_by_media_type: bool,
}

/// What the requests of one connection share. It has one at a time.
pub(crate) struct Connection {
    pub client: Client,
    /// What its requests count to, where there are limits of clients.
    pub account: ConnectionAccount,
    pub wire: Arc<Wire>,
    /// For responses without an end of their own.
    pub closing: Closing,
    pub last_header: Mutex<LastHeader>,
}

impl ServerState {
    /// A new connection, which notes what its requests need.
    pub fn connection(&self, client: Client, closing: Closing) -> Arc<Connection> {
        let wire = Wire::new(self.options.header_forwarding.is_active());
        Arc::new(Connection {
            client,
            account: self.options.client_limits.connection(),
            wire,
            closing,
            last_header: Mutex::default(),
        })
    }

    pub fn is_live(&self) -> bool {
        !self.in_flight.is_closed() && self.engine.is_live()
    }

    /// How long the JSON of a request may be.
    pub fn json_limit(&self) -> SizeLimit {
        SizeLimit::of_json(self.options.max_input_size)
    }

    /// Adds the headers that the operator lets through to the parameters.
    pub fn forward_headers(
        &self,
        headers: RequestHeaders<'_>,
        request: &mut InferRequest,
    ) -> Result<()> {
        let forwarding = &self.options.header_forwarding;
        let RequestHeaders { parsed, sent } = headers;
        match sent {
            Some(sent) => forwarding.forward(sent.iter(), request),
            None => {
                let parsed = parsed.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
                forwarding.forward(parsed, request)
            }
        }
    }
}
