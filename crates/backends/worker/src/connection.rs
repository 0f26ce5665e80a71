//! The server's side of one worker: its channels, memory, life cycle and open requests.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use galatea_config::ModelConfig;
use galatea_telemetry::logger::LogObserver;
use galatea_types::Result;

use crate::{
    lifecycle::Lifecycle,
    log_levels::LogLevels,
    memory::{MemoryRules, SharedMemory},
    outputs::ReportedOutputs,
    requests::ActiveRequests,
    transport::{Channels, Delivery, Message, WorkerEnds},
    waker::EventThreadWaker,
    watchdog::WorkLimits,
    wire::{OutgoingMessage, ProtocolError, kind},
};

/// The server's services for one kind of worker, besides giving it requests.
pub trait Services: Send + Sync + Sized + 'static {
    /// Handles an event whose kind has no meaning to this crate.
    ///
    /// # Errors
    /// [`ProtocolError`], which ends the worker. Unknown kinds are errors too.
    fn handle(
        connection: &Arc<Connection<Self>>,
        message: &Message<'_>,
    ) -> Result<(), ProtocolError>;

    /// Handles the worker's end: calls that it made are cancelled, requests sent to it end unanswered.
    fn end(&self);
}

/// A connection to one worker. The instance, the event thread and the responders of the worker's calls share it.
pub struct Connection<S> {
    /// The process with its life cycle.
    pub lifecycle: Lifecycle,
    /// The sockets.
    pub channels: Channels,
    /// Both arenas.
    pub memory: Arc<SharedMemory>,
    pub(crate) waker: Arc<EventThreadWaker>,
    /// Requests that the worker executes.
    pub requests: ActiveRequests,
    /// The configuration by which tensors are checked and reshaped here. `None`: the worker does that, or executes nothing.
    pub config: Option<Arc<ModelConfig>>,
    pub(crate) told: Arc<ReportedOutputs>,
    /// The services for this kind of worker.
    pub services: S,
    /// Limits of the worker's work.
    pub(crate) limits: WorkLimits,
    /// True while its model is being unloaded.
    is_leaving: AtomicBool,
}

impl<S: Services> LogObserver for Connection<S> {
    fn log_changed(&self) {
        let levels = OutgoingMessage::with_text(kind::LOG_LEVEL, &LogLevels::now().text());
        // The watchdog finds a worker that does not read its messages.
        let _ = self.channels.send_event(&levels);
    }
}

impl<S: Services> Connection<S> {
    pub(crate) fn new(
        lifecycle: Lifecycle,
        config: Option<Arc<ModelConfig>>,
        told: Arc<ReportedOutputs>,
        memory: MemoryRules,
        services: S,
        limits: WorkLimits,
    ) -> io::Result<(Self, WorkerEnds)> {
        let waker = Arc::new(EventThreadWaker::new()?);
        let memory = Arc::new(SharedMemory::new(memory, waker.clone())?);
        let (channels, ends) = Channels::new(memory.clone(), waker.clone())?;
        let connection = Self {
            lifecycle,
            channels,
            memory,
            waker,
            requests: ActiveRequests::default(),
            config,
            told,
            services,
            limits,
            is_leaving: AtomicBool::new(false),
        };
        Ok((connection, ends))
    }

    /// Marks the model as being unloaded: requests that nobody waits for get only a short time from now on.
    pub fn prepare_to_leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        // The event thread checks this flag from now on.
        self.waker.start_ticking();
    }

    /// Returns true if the model is being unloaded and nobody waits for the worker's requests.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed) && self.requests.are_abandoned()
    }

    /// Sends a command to the worker's main thread. The thread waits for it, so there is always room for one message.
    pub(crate) fn send_command(&self, message: &OutgoingMessage) -> Result<()> {
        match self.try_send_command(message)? {
            true => Ok(()),
            false => Err(self.lifecycle.mark_dead(Some("it does not read its messages"))),
        }
    }

    /// As [`Connection::send_command`], but other commands may wait there already. Returns false if there is no room yet.
    pub(crate) fn try_send_command(&self, message: &OutgoingMessage) -> Result<bool> {
        match self.channels.send_command(message)? {
            Delivery::Sent => Ok(true),
            Delivery::NoRoom => Ok(false),
            Delivery::Disconnected => Err(self.lifecycle.mark_dead(None)),
        }
    }

    /// Fails all open requests after the worker's last message and reports the end to the scheduler.
    pub(crate) fn on_disconnect(&self) {
        let error = self.lifecycle.mark_dead(None);
        self.requests.fail_all(&error);
        self.services.end();
        self.channels.clear_queue();
        self.lifecycle.raise_alarm(&error);
    }
}
