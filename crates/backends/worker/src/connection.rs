//! The server's side of one worker: its channels, memory and life, and what is under way.

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

/// What the server does for a worker besides giving it requests: the part that differs between kinds of workers.
pub trait Services: Send + Sync + Sized + 'static {
    /// Handles an event whose kind has no meaning to this crate.
    ///
    /// # Errors
    /// [`ProtocolError`], which ends the worker, also for kinds that are unknown.
    fn handle(
        connection: &Arc<Connection<Self>>,
        message: &Message<'_>,
    ) -> Result<(), ProtocolError>;

    /// The worker is gone: what it asked for is cancelled, what it was asked ends unanswered.
    fn end(&self);
}

/// Shared by the instance, the event thread, and the responders of the worker's calls.
pub struct Connection<S> {
    /// The process, and its end.
    pub lifecycle: Lifecycle,
    /// The sockets.
    pub channels: Channels,
    /// Both arenas.
    pub memory: Arc<SharedMemory>,
    pub(crate) waker: Arc<EventThreadWaker>,
    /// Requests that the worker executes.
    pub requests: ActiveRequests,
    /// Whose tensors are checked and reshaped here. `None`: the worker does that, or executes nothing.
    pub config: Option<Arc<ModelConfig>>,
    pub(crate) told: Arc<ReportedOutputs>,
    /// What the server does for this kind of worker.
    pub services: S,
    /// Of its work.
    pub(crate) limits: WorkLimits,
    /// Its model is being unloaded.
    is_leaving: AtomicBool,
}

impl<S: Services> LogObserver for Connection<S> {
    fn log_changed(&self) {
        let levels = OutgoingMessage::with_text(kind::LOG_LEVEL, &LogLevels::now().text());
        // A worker that does not read its messages is found by other means.
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

    /// Its model is being unloaded: what nobody waits for has only a little time left.
    pub fn prepare_to_leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        // The event thread looks at it from now on.
        self.waker.start_ticking();
    }

    /// Whether its model is being unloaded, and nobody waits for what the worker does.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed) && self.requests.are_abandoned()
    }

    /// Sends to the worker's main thread, which waits for it: there is always room for one message.
    pub(crate) fn send_command(&self, message: &OutgoingMessage) -> Result<()> {
        match self.try_send_command(message)? {
            true => Ok(()),
            false => Err(self.lifecycle.mark_dead(Some("it does not read its messages"))),
        }
    }

    /// [`Connection::send_command`] while other commands may wait there already. False: there is no room yet.
    pub(crate) fn try_send_command(&self, message: &OutgoingMessage) -> Result<bool> {
        match self.channels.send_command(message)? {
            Delivery::Sent => Ok(true),
            Delivery::NoRoom => Ok(false),
            Delivery::Disconnected => Err(self.lifecycle.mark_dead(None)),
        }
    }

    /// After the last message of the worker: everything under way fails, and the scheduler learns of it.
    pub(crate) fn on_disconnect(&self) {
        let error = self.lifecycle.mark_dead(None);
        self.requests.fail_all(&error);
        self.services.end();
        self.channels.clear_queue();
        self.lifecycle.raise_alarm(&error);
    }
}
