use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use galatea_engine::Engine;
use tokio::{
    runtime::Builder,
    sync::{mpsc, watch},
};

use crate::{
    GrpcOptions,
    accept::{Load, WorkerLink},
    calls::{Calls, Closing},
    connection,
    dispatch::Dispatcher,
    worker::Worker,
};

/// A running gRPC front end. Dropped, it stops at once.
pub struct GrpcServer {
    address: SocketAddr,
    calls: Arc<Calls>,
    closing: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// Serves gRPC on `listener` from threads of its own until [`GrpcServer::shut_down`].
pub fn serve(
    listener: std::net::TcpListener,
    engine: &Arc<Engine>,
    options: &GrpcOptions,
) -> io::Result<GrpcServer> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let (closing, is_closing) = watch::channel(false);
    let calls = Arc::new(Calls::default());
    let dispatcher = Dispatcher::new(engine, options, calls.clone());
    let mut links = Vec::new();
    let mut workers = Vec::new();
    for _ in 0..options.thread_count.max(1) {
        let (connections, incoming) = mpsc::unbounded_channel();
        let load = Arc::new(Load::default());
        links.push(WorkerLink { connections, load: load.clone() });
        workers.push(Worker {
            runtime: Builder::new_current_thread().enable_all().build()?,
            incoming,
            load,
            builder: connection::builder(options),
            dispatcher: dispatcher.clone(),
            closing: Closing(is_closing.clone()),
        });
    }
    let mut listener = Some((listener, links));
    let mut threads = Vec::new();
    for (index, worker) in workers.into_iter().enumerate() {
        // The first worker also accepts.
        let listener = listener.take();
        let name = format!("grpc-{index}");
        threads.push(thread::Builder::new().name(name).spawn(move || worker.run(listener))?);
    }
    Ok(GrpcServer { address, calls, closing, threads })
}

impl GrpcServer {
    /// Where it listens; the port is the real one when 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// From now on new calls are answered UNAVAILABLE (G-69); those in flight go on.
    pub fn refuse_new_calls(&self) {
        self.calls.close();
    }

    /// Refuses new calls, waits for those in flight at most `timeout`, then closes. Blocks. Returns how many
    /// calls had to be cut off.
    pub fn shut_down(self, timeout: Duration) -> usize {
        self.refuse_new_calls();
        self.calls.wait_idle(timeout)
    }
}

impl Drop for GrpcServer {
    fn drop(&mut self) {
        self.calls.close();
        self.closing.send_replace(true);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("a gRPC thread ended with a panic");
            }
        }
    }
}
