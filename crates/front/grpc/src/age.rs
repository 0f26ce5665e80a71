//! How long a connection may live.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use galatea_frontend::Closing;

use crate::{GrpcOptions, timer};

/// The age at which a client is asked to go, so that load balancers in front see it anew, and how long its calls may go
/// on then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionAge {
    limit: Duration,
    /// `None`: as long as they take.
    grace: Option<Duration>,
}

impl ConnectionAge {
    /// `None`: connections live as long as their clients want.
    pub fn of(options: &GrpcOptions) -> Option<Self> {
        let limit = options.max_connection_age?;
        Some(Self { limit, grace: options.max_connection_age_grace })
    }

    /// Drives `connection` to its end. At its age, or when the front end closes, `shut_down` is called on it, after which it
    /// takes no new calls; a grace later it is dropped.
    pub async fn serve<C: Future<Output = Result<(), E>>, E>(
        self,
        connection: C,
        mut closing: Closing,
        shut_down: impl FnOnce(Pin<&mut C>),
    ) -> Result<(), E> {
        let mut connection = pin!(connection);
        let grace = tokio::select! {
            output = connection.as_mut() => return output,
            () = closing.wait() => None,
            () = timer::after(self.spread()) => self.grace,
        };
        shut_down(connection.as_mut());
        match grace {
            None => connection.await,
            Some(grace) => tokio::time::timeout(grace, connection).await.unwrap_or(Ok(())),
        }
    }

    /// The age, a tenth more or less: connections that were opened together do not all end together.
    fn spread(self) -> Duration {
        self.limit.mul_f64(0.9 + 0.2 * fastrand::f64())
    }
}
