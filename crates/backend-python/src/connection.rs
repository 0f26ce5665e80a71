//! The server's side of one worker: its channels, memory and life, and what is under way.

use std::{
    io,
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{InstanceAlarm, ServerAccess};
use galatea_config::ModelConfig;
use galatea_types::Result;

use crate::{
    identity::WorkerIdentity,
    in_flight::InFlight,
    lifecycle::Lifecycle,
    memory::{ArenaLimits, SharedMemory},
    model_metrics::ModelMetrics,
    transport::{Channels, Delivery, Message, ReceiveError, WorkerEnds},
    waker::Waker,
    wire::{Malformed, Outgoing},
};

/// Shared by the instance, the event thread, and the responders of the worker's calls.
pub(crate) struct Connection {
    pub lifecycle: Lifecycle,
    pub channels: Channels,
    pub memory: Arc<SharedMemory>,
    pub waker: Arc<Waker>,
    pub in_flight: InFlight,
    /// `None`: the worker only completes a configuration.
    pub config: Option<Arc<ModelConfig>>,
    /// Other models, and control of them.
    pub server: ServerAccess,
    /// Metrics that the model defined.
    pub metrics: ModelMetrics,
}

impl Connection {
    pub fn new(
        identity: WorkerIdentity,
        config: Option<Arc<ModelConfig>>,
        limits: ArenaLimits,
        server: ServerAccess,
        alarm: InstanceAlarm,
    ) -> io::Result<(Self, WorkerEnds)> {
        let waker = Arc::new(Waker::new()?);
        let memory = Arc::new(SharedMemory::new(limits, waker.clone())?);
        let (channels, ends) = Channels::new(memory.clone(), waker.clone())?;
        let connection = Self {
            lifecycle: Lifecycle::new(identity, alarm),
            channels,
            memory,
            waker,
            in_flight: InFlight::default(),
            config,
            metrics: ModelMetrics::new(server.metrics.clone()),
            server,
        };
        Ok((connection, ends))
    }

    /// Sends to the worker's main thread, which waits for it: there is always room for one message.
    pub fn send_command(&self, message: &Outgoing) -> Result<()> {
        match self.try_send_command(message)? {
            true => Ok(()),
            false => Err(self.lifecycle.mark_dead(Some("it does not read its messages"))),
        }
    }

    /// [`Connection::send_command`] while other commands may wait there already. False: there is no room yet.
    pub fn try_send_command(&self, message: &Outgoing) -> Result<bool> {
        match self.channels.send_command(message)? {
            Delivery::Sent => Ok(true),
            Delivery::NoRoom => Ok(false),
            Delivery::Disconnected => Err(self.lifecycle.mark_dead(None)),
        }
    }

    /// The worker's next reply, in its first `length` bytes of `buffer`: see [`Channels::receive_reply`].
    pub fn receive_reply(&self, buffer: &mut [u8], spin: Duration) -> Result<usize, ReceiveError> {
        self.channels.receive_reply(buffer, spin)
    }

    /// The worker's next reply, or an error at `deadline` or when its process has ended.
    pub fn receive_reply_until(
        &self,
        buffer: &mut [u8],
        deadline: Instant,
    ) -> Result<usize, ReceiveError> {
        let process = self.lifecycle.process().ok_or(ReceiveError::Disconnected)?;
        self.channels.receive_reply_until(buffer, deadline, process.as_fd())
    }

    /// Opens a packet of the worker: see [`Message::open`].
    pub fn open<T>(
        &self,
        packet: &[u8],
        read: impl FnOnce(&Message<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        Message::open(packet, &self.memory, read)
    }

    /// After the last message of the worker: everything under way fails, and the scheduler learns of it.
    pub fn on_disconnect(&self) {
        let error = self.lifecycle.mark_dead(None);
        self.in_flight.fail_all(&error);
        self.metrics.clear();
        self.channels.clear_queue();
        self.lifecycle.raise_alarm(&error);
    }
}
