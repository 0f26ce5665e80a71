use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    runtime::Runtime,
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    accept::{self, Accepted, Stage, WorkerLink},
    service::Service,
};

/// How long connections get to send the rest of their last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// One thread of the front end: a runtime of its own and the connections it was given.
pub(crate) struct Worker {
    pub runtime: Runtime,
    pub incoming: mpsc::UnboundedReceiver<Accepted>,
    pub service: Arc<Service>,
    pub stage: watch::Receiver<Stage>,
}

impl Worker {
    /// Runs until the server closes. The one that is given the listener accepts for all.
    pub fn run(self, listener: Option<(std::net::TcpListener, Vec<WorkerLink>)>) {
        let Self { runtime, mut incoming, service, mut stage } = self;
        runtime.block_on(async {
            if let Some((listener, workers)) = listener {
                tokio::spawn(listen(listener, workers, stage.clone()));
            }
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    Some(accepted) = incoming.recv() => {
                        open.spawn(serve_connection(accepted, service.clone(), stage.clone()));
                    }
                    Some(_) = open.join_next() => {}
                    () = Stage::Closing.reached(&mut stage) => break,
                }
            }
            let all_ended = async { while open.join_next().await.is_some() {} };
            // Connections that stay longer are cut off: their requests had their time already.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, all_ended).await;
        });
        // A model that is still loading on a blocking thread does not hold up the end.
        runtime.shutdown_background();
    }
}

async fn listen(
    listener: std::net::TcpListener,
    workers: Vec<WorkerLink>,
    stage: watch::Receiver<Stage>,
) {
    if let Err(error) = accept::accept(listener, workers, stage).await {
        log::error!("failed to listen for HTTP: {error}");
    }
}

async fn serve_connection(
    accepted: Accepted,
    service: Arc<Service>,
    mut stage: watch::Receiver<Stage>,
) {
    let Accepted { stream, load: _load } = accepted;
    let _open = service.activity.open_connection();
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => TokioIo::new(stream),
        Err(error) => return log::debug!("lost an HTTP connection before it began: {error}"),
    };
    let respond = service_fn(|request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.call(request).await) }
    });
    let mut connection = pin!(builder().serve_connection(stream, respond));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = Stage::Closing.reached(&mut stage) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        log::debug!("an HTTP connection ended early: {error}");
    }
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Header names as Triton writes them, and no header it does not send. Not `pipeline_flush`: it copies
    // every body into the write buffer.
    builder.title_case_headers(true).auto_date_header(false);
    builder
}
