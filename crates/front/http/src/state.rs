//! The state that the handlers of requests share.

use std::sync::{Arc, Mutex};

use galatea_console::Console;
use galatea_engine::Engine;
use galatea_frontend::{Client, Closing, ConnectionAccount, InFlight};
use galatea_protocol::http::LastHeader;

use crate::{
    io::{ConnectionIo, body_error::SizeLimit},
    options::HttpOptions,
};

pub(crate) const PROTOCOL: &str = "http";

/// The state of a server, shared by all connections.
pub(crate) struct ServerState {
    pub engine: Arc<Engine>,
    pub options: HttpOptions,
    pub in_flight: Arc<InFlight>,
    /// The console, if it is enabled.
    pub console: Option<Console>,
    /// The media type with the length of a body's JSON, up to the number. `None`: a header has the length.
    pub binary_media_type: Option<&'static str>,
    /// Is `true` if answers use that media type too.
    pub answers_by_media_type: bool,
}

/// The state that the requests of one connection share. It has one request at a time.
pub(crate) struct Connection {
    pub client: Client,
    /// The account of its requests, if clients have limits.
    pub account: ConnectionAccount,
    /// Locked for one step at a time, by the handler that reads a body or by the connection's loop. Both run in one task.
    pub io: Mutex<ConnectionIo>,
    /// For responses without an end of their own.
    pub closing: Closing,
    pub last_header: Mutex<LastHeader>,
}

impl ServerState {
    pub fn connection(
        &self,
        io: ConnectionIo,
        client: Client,
        closing: Closing,
    ) -> Arc<Connection> {
        Arc::new(Connection {
            client,
            account: self.options.client_limits.connection(),
            io: Mutex::new(io),
            closing,
            last_header: Mutex::default(),
        })
    }

    pub fn is_live(&self) -> bool {
        !self.in_flight.is_closed() && self.engine.is_live()
    }

    pub fn json_limit(&self) -> SizeLimit {
        SizeLimit::of_json(self.options.max_input_size)
    }
}
