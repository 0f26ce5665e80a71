//! The stages of a shutdown, and how connections learn of them.

use std::pin::{Pin, pin};

use tokio::sync::watch;

/// The progress of a front end towards its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShutdownStage {
    Serving,
    /// Clients should disconnect. Requests in progress continue; new ones are answered or refused.
    Draining,
    /// Another process accepts the connections. Clients should disconnect; all their requests are answered.
    HandedOver,
    /// Connections are closed as soon as no request on them is being answered.
    Closing,
}

impl ShutdownStage {
    /// Waits until the front end reaches this stage, or is gone.
    pub async fn reached(self, stage: &mut watch::Receiver<ShutdownStage>) {
        let _ = stage.wait_for(|now| *now >= self).await;
    }
}

/// Notifies a connection that the front end closes.
#[derive(Clone, Debug)]
pub struct Closing(pub(crate) watch::Receiver<ShutdownStage>);

impl Closing {
    /// Returns once the front end closes its connections; at once if it already does.
    pub async fn wait(&mut self) {
        ShutdownStage::Closing.reached(&mut self.0).await;
    }

    /// Returns once another process accepts the connections, or the front end closes; at once if it already is so. From
    /// then on a client that is told to connect again finds a server.
    pub async fn wait_for_hand_over(&mut self) {
        ShutdownStage::HandedOver.reached(&mut self.0).await;
    }

    /// Returns once the front end wants its clients to disconnect; at once if it already does. For responses without an
    /// end of their own.
    pub async fn wait_for_drain(&mut self) {
        ShutdownStage::Draining.reached(&mut self.0).await;
    }

    /// Drives `connection` to its end. When the front end is handed over or closes, `shut_down` lets the connection finish its current
    /// answers and end.
    pub async fn serve<C: Future>(
        mut self,
        connection: C,
        shut_down: impl FnOnce(Pin<&mut C>),
    ) -> C::Output {
        let mut connection = pin!(connection);
        tokio::select! {
            output = connection.as_mut() => output,
            () = self.wait_for_hand_over() => {
                shut_down(connection.as_mut());
                connection.await
            }
        }
    }
}
