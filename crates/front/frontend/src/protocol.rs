//! What a front end asks of the protocol it serves.

use std::{fmt, sync::Arc};

use crate::{
    client::Client,
    connections::{Activity, Framing},
    in_flight::InFlight,
    stage::Closing,
    stream::Stream,
};

/// What is spoken on the connections of a front end.
pub trait Protocol: Send + Sync + 'static {
    /// Why a connection ended early; only logged.
    type Error: fmt::Display + Send;

    /// The requests being answered on all connections. The protocol counts them, the front end waits for them when it
    /// shuts down.
    fn in_flight(&self) -> &Arc<InFlight>;

    /// How requests lie on its connections.
    fn framing(&self) -> Framing;

    /// Serves one connection until the client ends it or the front end closes; see [`Closing::serve`]. The requests on it
    /// are announced to `activity`, by which connections that keep the server waiting are found: they are dropped. They
    /// come from `client`.
    fn serve(
        &self,
        stream: impl Stream,
        client: Client,
        activity: Arc<Activity>,
        closing: Closing,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
