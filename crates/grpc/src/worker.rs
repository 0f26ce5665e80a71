use std::{sync::Arc, time::Duration};

use hyper::server::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    accept::{self, Load, WorkerLink},
    calls::Closing,
    connection,
    dispatch::Dispatcher,
};

/// How long connections get to say goodbye once their calls are done.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// One thread of the front end: a runtime of its own and the connections it was given.
pub(crate) struct Worker {
    pub runtime: Runtime,
    pub incoming: mpsc::UnboundedReceiver<std::net::TcpStream>,
    pub load: Arc<Load>,
    pub builder: http2::Builder<TokioExecutor>,
    pub dispatcher: Dispatcher,
    pub closing: Closing,
}

impl Worker {
    /// Runs until `closing`. The one that is given the listener accepts for all.
    pub fn run(self, listener: Option<(std::net::TcpListener, Vec<WorkerLink>)>) {
        let Self { runtime, mut incoming, load, builder, dispatcher, mut closing } = self;
        runtime.block_on(async {
            if let Some((listener, workers)) = listener {
                tokio::spawn(listen(listener, workers, closing.clone()));
            }
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    Some(stream) = incoming.recv() => match TcpStream::from_std(stream) {
                        Ok(stream) => {
                            let (held, closing) = (load.hold(), closing.clone());
                            let (builder, dispatcher) = (builder.clone(), dispatcher.clone());
                            open.spawn(async move {
                                connection::serve_connection(stream, builder, dispatcher, closing).await;
                                drop(held);
                            });
                        }
                        Err(error) => log::debug!("lost a gRPC connection before it began: {error}"),
                    },
                    Some(_) = open.join_next() => {}
                    () = closing.wait() => break,
                }
            }
            let all_ended = async { while open.join_next().await.is_some() {} };
            // Connections that stay longer are cut off: their calls had their time already.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, all_ended).await;
        });
        // A model that is still loading on a blocking thread does not hold up the end.
        runtime.shutdown_background();
    }
}

async fn listen(listener: std::net::TcpListener, workers: Vec<WorkerLink>, closing: Closing) {
    match TcpListener::from_std(listener) {
        Ok(listener) => accept::accept(listener, workers, closing).await,
        Err(error) => log::error!("failed to listen for gRPC: {error}"),
    }
}
