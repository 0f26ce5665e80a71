//! What a front end asks of the protocol it serves.

use std::{fmt, sync::Arc};

use crate::{in_flight::InFlight, stage::Closing, transport::Stream};

/// What is spoken on the connections of a front end.
pub trait Protocol: Send + Sync + 'static {
    /// Why a connection ended early; only logged.
    type Error: fmt::Display + Send;

    /// The requests being answered on all connections. The protocol counts them, the front end waits for them when it
    /// shuts down.
    fn in_flight(&self) -> &Arc<InFlight>;

    /// Serves one connection until the client ends it or the front end closes; see [`Closing::serve`].
    fn serve(
        &self,
        stream: impl Stream,
        closing: Closing,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
