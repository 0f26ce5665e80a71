use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};

/// How far a server is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// No new connections; requests on open ones are refused.
    Draining,
    /// Connections are closed as soon as nothing is being answered on them.
    Closing,
}

impl Stage {
    /// Waits until the server has come so far, or is gone.
    pub async fn reached(self, stage: &mut watch::Receiver<Stage>) {
        let _ = stage.wait_for(|now| *now >= self).await;
    }
}

/// A connection on its way to its worker, counted there from now on.
pub(crate) struct Accepted {
    pub stream: std::net::TcpStream,
    pub load: LoadGuard,
}

/// A worker as the accepting one sees it.
pub(crate) struct WorkerLink {
    pub connections: mpsc::UnboundedSender<Accepted>,
    pub load: Arc<Load>,
}

/// Connections a worker holds.
#[derive(Debug, Default)]
pub(crate) struct Load(AtomicUsize);

pub(crate) struct LoadGuard(Arc<Load>);

impl Load {
    fn hold(self: &Arc<Self>) -> LoadGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        LoadGuard(self.clone())
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hands each new connection to the worker with the fewest, while the server serves.
pub(crate) async fn accept(
    listener: std::net::TcpListener,
    workers: Vec<WorkerLink>,
    mut stage: watch::Receiver<Stage>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = Stage::Draining.reached(&mut stage) => return Ok(()),
        };
        if let Err(error) = accepted.and_then(|(stream, _)| hand_over(stream, &workers)) {
            log::warn!("failed to accept an HTTP connection: {error}");
            // Out of file descriptors: trying again at once would only spin.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn hand_over(stream: TcpStream, workers: &[WorkerLink]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    if let Some(worker) = workers.iter().min_by_key(|w| w.load.0.load(Ordering::Relaxed)) {
        // A worker that is gone drops the connection, which is what a server at its end does.
        let _ = worker.connections.send(Accepted { stream, load: worker.load.hold() });
    }
    Ok(())
}
