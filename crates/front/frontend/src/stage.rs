//! The stages of a shutdown, and how connections learn of them.

use std::pin::{Pin, pin};

use tokio::sync::watch;

/// How far a front end has come on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShutdownStage {
    Serving,
    /// No more clients are wanted. Requests in flight go on, new ones are answered or refused.
    Draining,
    /// Connections are closed as soon as nothing is being answered on them.
    Closing,
}

impl ShutdownStage {
    /// Waits until the front end has come so far, or is gone.
    pub async fn reached(self, stage: &mut watch::Receiver<ShutdownStage>) {
        let _ = stage.wait_for(|now| *now >= self).await;
    }
}

/// Tells a connection that the front end closes.
#[derive(Clone, Debug)]
pub struct Closing(pub(crate) watch::Receiver<ShutdownStage>);

impl Closing {
    /// Returns once the front end closes its connections; at once when it already does.
    pub async fn wait(&mut self) {
        ShutdownStage::Closing.reached(&mut self.0).await;
    }

    /// Returns once the front end wants its clients to go away; at once when it already does. For responses without an
    /// end of their own.
    pub async fn wait_for_drain(&mut self) {
        ShutdownStage::Draining.reached(&mut self.0).await;
    }

    /// Drives `connection` to its end. When the front end closes, `shut_down` is called on it first, which lets it
    /// finish what is being answered and then end.
    pub async fn serve<C: Future>(
        mut self,
        connection: C,
        shut_down: impl FnOnce(Pin<&mut C>),
    ) -> C::Output {
        let mut connection = pin!(connection);
        tokio::select! {
            output = connection.as_mut() => output,
            () = self.wait() => {
                shut_down(connection.as_mut());
                connection.await
            }
        }
    }
}
