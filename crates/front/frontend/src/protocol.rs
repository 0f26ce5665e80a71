//! The interface between a front end and the protocol that it serves.

use std::{fmt, sync::Arc};

use crate::{
    client::Client,
    connections::{Activity, Framing},
    in_flight::InFlight,
    stage::Closing,
    stream::Stream,
};

/// The protocol on the connections of a front end.
pub trait Protocol: Send + Sync + 'static {
    /// The reason why a connection ended early; only logged.
    type Error: fmt::Display + Send;

    /// Returns the requests in progress on all connections. The protocol counts them; the front end waits for them when
    /// it shuts down.
    fn in_flight(&self) -> &Arc<InFlight>;

    /// Returns the order of requests on its connections.
    fn framing(&self) -> Framing;

    /// Serves one connection until the client ends it or the front end closes; see [`Closing::serve`]. The protocol
    /// reports each request from `client` to `activity`, by which the sweep finds overdue connections. Those are
    /// dropped.
    fn serve(
        &self,
        stream: impl Stream,
        client: Client,
        activity: Arc<Activity>,
        closing: Closing,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
