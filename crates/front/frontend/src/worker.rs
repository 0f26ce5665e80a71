//! The threads that serve connections.

use std::{sync::Arc, time::Duration};

use galatea_types::late_work;
use tokio::{
    runtime::Runtime,
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::io::InspectReader;

use crate::{
    acceptor::{AcceptedConnection, Acceptor},
    client::Client,
    protocol::Protocol,
    stage::{Closing, ShutdownStage},
    transport::{Opened, Transport},
};

/// The time that connections get to send the rest of their last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// One thread of a front end, with its own runtime and its connections.
pub(crate) struct Worker<P, T> {
    pub runtime: Runtime,
    pub incoming: mpsc::UnboundedReceiver<AcceptedConnection>,
    pub service: ConnectionService<P, T>,
    pub stage: watch::Receiver<ShutdownStage>,
}

impl<P: Protocol, T: Transport> Worker<P, T> {
    /// Runs until the front end closes. The worker that gets the acceptor accepts for all workers.
    pub fn run(self, acceptor: Option<Acceptor>) {
        let Self { runtime, mut incoming, service, mut stage } = self;
        runtime.block_on(async {
            if let Some(acceptor) = acceptor {
                tokio::spawn(acceptor.run());
            }
            tokio::spawn(late_work::serve());
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    Some(accepted) = incoming.recv() => {
                        let activity = accepted.slot.activity.clone();
                        let closing = Closing(stage.clone());
                        activity.served_by(open.spawn(service.clone().serve(accepted, closing)));
                    }
                    Some(ended) = open.join_next() => {
                        if ended.is_err_and(|error| error.is_panic()) {
                            log::error!("{}: a panic ended a connection", service.name);
                        }
                    }
                    () = ShutdownStage::Closing.reached(&mut stage) => break,
                }
            }
            let all_ended = async { while open.join_next().await.is_some() {} };
            // Connections that take longer are cut off: their requests had their time already.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, all_ended).await;
        });
        // A model that is still loading on a blocking thread does not delay the end.
        runtime.shutdown_background();
    }
}

pub(crate) struct ConnectionService<P, T> {
    /// The name of the front end, for the log.
    pub name: &'static str,
    pub protocol: Arc<P>,
    pub transport: Arc<T>,
}

impl<P, T> Clone for ConnectionService<P, T> {
    fn clone(&self) -> Self {
        let Self { name, protocol, transport } = self;
        Self { name, protocol: protocol.clone(), transport: transport.clone() }
    }
}

impl<P: Protocol, T: Transport> ConnectionService<P, T> {
    async fn serve(self, accepted: AcceptedConnection, mut closing: Closing) {
        let Self { name, protocol, transport } = self;
        let AcceptedConnection { socket, peer, counted: _counted, mut slot } = accepted;
        slot.hold_more(transport.connection_bytes());
        let activity = slot.activity.clone();
        let opened = async { transport.accept(socket.attach(activity.clone())?).await };
        let Opened { stream, certificate, mut unexpected_tls } = tokio::select! {
            opened = opened => match opened {
                Ok(opened) => opened,
                Err(error) => return log::debug!("{name}: lost a connection before it began: {error}"),
            },
            () = closing.wait() => return,
        };
        // The socket records written bytes: a stream may accept bytes that the client does not.
        let noted = activity.clone();
        let stream = InspectReader::new(stream, move |read: &[u8]| {
            noted.record_read(read.len());
            if let Some(unexpected) = unexpected_tls.take() {
                unexpected.look_at(read);
            }
        });
        if let Err(error) =
            protocol.serve(stream, Client { peer, certificate }, activity, closing).await
        {
            log::debug!("{name}: a connection ended early: {error}");
        }
    }
}
