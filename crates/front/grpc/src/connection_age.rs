//! The age limit of connections.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use galatea_frontend::Closing;

use crate::{GrpcOptions, timer};

/// The age at which the server asks a client to reconnect, and the time that its calls get then. Load balancers can
/// then assign the client anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionAge {
    limit: Duration,
    /// `None`: calls may take as long as they need.
    grace: Option<Duration>,
}

impl ConnectionAge {
    /// Returns the age limit; `None` if connections live as long as their clients want.
    pub fn of(options: &GrpcOptions) -> Option<Self> {
        let limit = options.max_connection_age?;
        Some(Self { limit, grace: options.max_connection_age_grace })
    }

    /// Drives `connection` to its end. At its age limit, or when the front end is handed over or closes, `shut_down` makes it refuse new
    /// calls. After the grace period it is dropped.
    pub async fn serve<C: Future<Output = Result<(), E>>, E>(
        self,
        connection: C,
        mut closing: Closing,
        shut_down: impl FnOnce(Pin<&mut C>),
    ) -> Result<(), E> {
        let mut connection = pin!(connection);
        let grace = tokio::select! {
            output = connection.as_mut() => return output,
            () = closing.wait_for_hand_over() => None,
            () = timer::after(self.spread()) => self.grace,
        };
        shut_down(connection.as_mut());
        match grace {
            None => connection.await,
            Some(grace) => tokio::time::timeout(grace, connection).await.unwrap_or(Ok(())),
        }
    }

    /// Returns the age limit, varied by a tenth: connections that were opened together should not all end together.
    fn spread(self) -> Duration {
        self.limit.mul_f64(0.9 + 0.2 * fastrand::f64())
    }
}
