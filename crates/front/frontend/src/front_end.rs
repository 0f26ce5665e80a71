//! A running front end: its threads, and how it comes to its end.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime::Builder,
    sync::{mpsc, watch},
};

use crate::{
    accept::{Acceptor, WorkerLink},
    connections::ConnectionLimits,
    in_flight::InFlight,
    listener::Listener,
    protocol::Protocol,
    stage::ShutdownStage,
    transport::Transport,
    worker::{ConnectionService, Worker},
};

/// After so many polls of connections that have work at hand a thread looks which others have become ready: one poll may
/// take a millisecond of a long message, and with tokio's default of 61 the others waited tens of them.
const EVENT_INTERVAL: u32 = 16;

/// How a front end runs.
#[derive(Clone, Debug)]
pub struct FrontEndOptions {
    /// Names its threads, with a number behind, and its lines in the log.
    pub name: &'static str,
    /// Worker threads; at least one is started.
    pub thread_count: usize,
    /// Whether connections are accepted until the very end, so that new clients too receive the error that the
    /// server exits; otherwise only until requests are refused.
    pub accepts_while_draining: bool,
    /// The connections of the server, which all its front ends share.
    pub limits: Arc<ConnectionLimits>,
    /// Whether it may have the connections that the limits keep back.
    pub uses_reserve: bool,
}

/// A protocol being served on a listener by threads of its own. Dropped, it stops at once.
pub struct FrontEnd {
    name: &'static str,
    address: Option<SocketAddr>,
    in_flight: Arc<InFlight>,
    /// Of each worker.
    connections: Vec<Arc<InFlight>>,
    stage: watch::Sender<ShutdownStage>,
    threads: Vec<JoinHandle<()>>,
}

impl FrontEnd {
    /// Starts to serve. Fails where the system refuses a thread or what a runtime needs.
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
        let stops_at =
            if accepts_while_draining { ShutdownStage::Closing } else { ShutdownStage::Draining };
        let acceptor = Acceptor {
            name,
            listener,
            workers: links,
            stage,
            stops_at,
            limits,
            uses_reserve,
            framing,
        };
        front_end.spawn(workers, acceptor)?;
        Ok(front_end)
    }

    /// The first worker also accepts.
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

    /// Where it listens, with the real port when 0 was asked for; `None` on a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.connections.iter().map(|connections| connections.count()).sum()
    }

    /// Requests being answered now.
    pub fn requests_in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// From now on the clients that are connected are served on and told to go away, where the protocol can do so, and
    /// new ones are not accepted, unless they are to read that requests are refused.
    pub fn drain(&self) {
        self.in_flight.drain();
        self.advance_to(ShutdownStage::Draining);
    }

    /// From now on new requests are refused, with what the protocol has for it; those in flight go on.
    pub fn refuse_new_requests(&self) {
        self.in_flight.close();
        self.advance_to(ShutdownStage::Draining);
    }

    /// Refuses new requests, waits for those in flight at most `timeout`, then closes. Blocks. Returns how many
    /// requests had to be cut off.
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
