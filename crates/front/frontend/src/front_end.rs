//! A running front end: its threads and its shutdown.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{
    runtime::Builder,
    sync::{mpsc, watch},
};

use crate::{
    acceptor::{Acceptor, WorkerLink},
    connections::ConnectionLimits,
    in_flight::InFlight,
    listener::Listener,
    protocol::Protocol,
    stage::ShutdownStage,
    transport::Transport,
    worker::{ConnectionService, Worker},
};

/// The number of polls after which a busy thread looks for connections that became ready. One poll of a long message
/// may take a millisecond; with tokio's default of 61 the others waited tens of them.
const EVENT_INTERVAL: u32 = 16;

/// The options of a front end.
#[derive(Clone, Debug)]
pub struct FrontEndOptions {
    /// The name of its threads, followed by a number, and of its lines in the log.
    pub name: &'static str,
    /// The number of worker threads; at least one is started.
    pub thread_count: usize,
    /// Connections are accepted to the very end, so that new clients also receive the error that the server exits.
    /// Otherwise they are accepted only until draining begins.
    pub accepts_while_draining: bool,
    /// The connections of the server, shared by all its front ends.
    pub limits: Arc<ConnectionLimits>,
    /// Allows this front end the connections that the limits reserve.
    pub uses_reserve: bool,
}

/// A protocol that is served on a listener by its own threads. Dropping it stops them at once.
pub struct FrontEnd {
    name: &'static str,
    address: Option<SocketAddr>,
    in_flight: Arc<InFlight>,
    /// The connections of each worker.
    connections: Vec<Arc<InFlight>>,
    /// Not idle while connections are accepted.
    accepting: Arc<InFlight>,
    stage: watch::Sender<ShutdownStage>,
    threads: Vec<JoinHandle<()>>,
}

impl FrontEnd {
    /// Starts serving. Fails if the system refuses a thread or a resource of its runtime.
    pub fn start(
        listener: Listener,
        transport: impl Transport,
        protocol: impl Protocol,
        options: FrontEndOptions,
    ) -> io::Result<Self> {
        let FrontEndOptions { name, thread_count, accepts_while_draining, limits, uses_reserve } =
            options;
        let address = listener.local_addr()?;
        listener.set_nonblocking()?;
        let (sender, stage) = watch::channel(ShutdownStage::Serving);
        let mut front_end = Self {
            name,
            address,
            in_flight: protocol.in_flight().clone(),
            connections: Vec::new(),
            accepting: Arc::default(),
            stage: sender,
            threads: Vec::new(),
        };
        let framing = protocol.framing();
        let service = ConnectionService {
            name,
            protocol: Arc::new(protocol),
            transport: Arc::new(transport),
        };
        let (mut links, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..thread_count.max(1) {
            let (sender, incoming) = mpsc::unbounded_channel();
            let connections = Arc::<InFlight>::default();
            front_end.connections.push(connections.clone());
            links.push(WorkerLink { sender, connections });
            let runtime = Builder::new_current_thread()
                .enable_all()
                .event_interval(EVENT_INTERVAL)
                .build()?;
            let (service, stage) = (service.clone(), stage.clone());
            workers.push(Worker { runtime, incoming, service, stage });
        }
        let stops_at = match accepts_while_draining {
            true => ShutdownStage::HandedOver,
            false => ShutdownStage::Draining,
        };
        let acceptor = Acceptor {
            name,
            listener,
            workers: links,
            stage,
            stops_at,
            limits,
            uses_reserve,
            framing,
            accepting: front_end.accepting.begin(),
        };
        front_end.spawn(workers, acceptor)?;
        Ok(front_end)
    }

    /// Starts the threads of the workers. The first worker also accepts.
    fn spawn<P: Protocol, T: Transport>(
        &mut self,
        workers: Vec<Worker<P, T>>,
        acceptor: Acceptor,
    ) -> io::Result<()> {
        let mut acceptor = Some(acceptor);
        for (index, worker) in workers.into_iter().enumerate() {
            let acceptor = acceptor.take();
            let thread = thread::Builder::new().name(format!("{}-{index}", self.name));
            self.threads.push(thread.spawn(move || worker.run(acceptor))?);
        }
        Ok(())
    }

    /// Returns the address of the listener, with the real port if 0 was asked for; `None` on a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the number of open connections.
    pub fn open_connections(&self) -> usize {
        self.connections.iter().map(|connections| connections.count()).sum()
    }

    /// Returns the number of requests in progress.
    pub fn requests_in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Starts draining: connected clients are served and asked to disconnect where the protocol can do so. New
    /// connections are accepted only with `accepts_while_draining`.
    pub fn drain(&self) {
        self.in_flight.drain();
        self.advance_to(ShutdownStage::Draining);
    }

    /// Accepts no more connections, because another process has the listener too. Each open connection ends as soon as its
    /// client can be told to connect again. All requests are answered.
    pub fn hand_over(&self) {
        self.in_flight.drain();
        self.advance_to(ShutdownStage::HandedOver);
    }

    /// Waits until the clients of a front end that was handed over have disconnected, at most until `deadline`. Blocks. Returns
    /// the number of connections that are still open.
    pub fn wait_until_left(&self, deadline: Instant) -> usize {
        let wait = |connections: &Arc<InFlight>| {
            connections.close();
            connections.wait_idle(deadline.saturating_duration_since(Instant::now()))
        };
        // The acceptor may still have a connection in its hand.
        wait(&self.accepting);
        self.connections.iter().map(wait).sum()
    }

    /// Refuses new requests with the protocol's error from now on. Requests in progress continue.
    pub fn refuse_new_requests(&self) {
        self.in_flight.close();
        self.advance_to(ShutdownStage::Draining);
    }

    /// Refuses new requests, waits at most `timeout` for those in progress, then closes. Blocks. Returns the number of
    /// requests that were cut off.
    pub fn shut_down(self, timeout: Duration) -> usize {
        self.refuse_new_requests();
        self.in_flight.wait_idle(timeout)
    }

    fn advance_to(&self, next: ShutdownStage) {
        self.stage.send_if_modified(|stage| {
            let is_behind = *stage < next;
            if is_behind {
                *stage = next;
            }
            is_behind
        });
    }
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        self.in_flight.close();
        self.advance_to(ShutdownStage::Closing);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                log::error!("{}: a thread ended with a panic", self.name);
            }
        }
    }
}
