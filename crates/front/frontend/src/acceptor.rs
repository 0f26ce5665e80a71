//! Accepts connections and gives each to a worker.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::MissedTickBehavior,
};

use crate::{
    client::Peer,
    connections::{ConnectionLimits, Framing, Slot},
    in_flight::{InFlight, RequestGuard},
    listener::Listener,
    repeated_log::RepeatedLog,
    socket::DetachedSocket,
    stage::ShutdownStage,
};

/// The first and the longest pause after a failed accept. The usual cause is that the process has no file descriptors
/// left, so an immediate retry would only spin.
const ACCEPT_BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// An accepted connection that is on its way to its worker. The worker counts it from now on.
pub(crate) struct AcceptedConnection {
    pub socket: DetachedSocket,
    pub peer: Peer,
    pub counted: RequestGuard,
    pub slot: Slot,
}

pub(crate) struct WorkerLink {
    pub sender: mpsc::UnboundedSender<AcceptedConnection>,
    /// The open connections of the worker.
    pub connections: Arc<InFlight>,
}

/// Accepts connections from a listener for all workers, and sweeps the connections of all front ends.
pub(crate) struct Acceptor {
    /// The name of the front end, for the log.
    pub name: &'static str,
    pub listener: Listener,
    pub workers: Vec<WorkerLink>,
    pub stage: watch::Receiver<ShutdownStage>,
    /// The stage from which no connections are accepted.
    pub stops_at: ShutdownStage,
    pub limits: Arc<ConnectionLimits>,
    pub uses_reserve: bool,
    pub framing: Framing,
    /// Held until the last connection is with its worker.
    pub accepting: RequestGuard,
}

impl Acceptor {
    /// Accepts until the front end reaches the stage at which it stops.
    #[expect(
        clippy::disallowed_methods,
        reason = "what is short (descriptors, memory) reports nothing when it is there again"
    )]
    pub async fn run(self) {
        let Self { name, listener, workers, mut stage, stops_at, limits, uses_reserve, .. } = self;
        let (framing, _accepting) = (self.framing, self.accepting);
        let listener = match listener.attach() {
            Ok(listener) => listener,
            Err(error) => return log::error!("{name}: failed to listen: {error}"),
        };
        let mut sweep = tokio::time::interval(limits.sweep_interval());
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (failures, mut backoff) = (RepeatedLog::default(), ACCEPT_BACKOFF.0);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = sweep.tick() => {
                    limits.sweep();
                    continue;
                }
                () = stops_at.reached(&mut stage) => return,
            };
            match accepted {
                Ok((socket, peer)) => {
                    backoff = ACCEPT_BACKOFF.0;
                    // Dropping the socket closes it when the limits allow no further connection.
                    if let Some(slot) = limits.admit(framing, uses_reserve).await {
                        hand_over(socket, peer, slot, &workers);
                    }
                }
                Err(error) => {
                    failures.warn(|| format!("{name}: failed to accept a connection: {error}"));
                    limits.make_room();
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(ACCEPT_BACKOFF.1);
                }
            }
        }
    }
}

/// Gives the connection to the worker with the fewest connections.
fn hand_over(socket: DetachedSocket, peer: Peer, slot: Slot, workers: &[WorkerLink]) {
    if let Some(worker) = workers.iter().min_by_key(|worker| worker.connections.count()) {
        let counted = worker.connections.begin();
        // A worker that has ended drops the connection, as a server that shuts down does.
        let _ = worker.sender.send(AcceptedConnection { socket, peer, counted, slot });
    }
}
