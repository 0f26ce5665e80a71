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
    sync::mpsc,
};

use crate::calls::Closing;

/// A worker as the accepting one sees it.
#[derive(Clone)]
pub(crate) struct WorkerLink {
    pub connections: mpsc::UnboundedSender<std::net::TcpStream>,
    pub load: Arc<Load>,
}

/// Connections a worker holds.
#[derive(Debug, Default)]
pub(crate) struct Load(AtomicUsize);

impl Load {
    /// Counts a connection until the guard goes.
    pub fn hold(self: &Arc<Self>) -> LoadGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        LoadGuard(self.clone())
    }
}

pub(crate) struct LoadGuard(Arc<Load>);

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hands each new connection to the worker with the fewest, until `closing`.
pub(crate) async fn accept(listener: TcpListener, workers: Vec<WorkerLink>, mut closing: Closing) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.wait() => return,
        };
        if let Err(error) = accepted.and_then(|(stream, _)| hand_over(stream, &workers)) {
            log::warn!("failed to accept a gRPC connection: {error}");
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
        let _ = worker.connections.send(stream);
    }
    Ok(())
}
