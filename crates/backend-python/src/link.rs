//! What connects the server with one worker: sockets, shared memory, the process, and what is under way.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_backend::{InstanceAlarm, ServerAccess};
use galatea_config::ModelConfig;
use galatea_types::{Error, Result};
use rustix::event::{PollFd, PollFlags};

use crate::{
    calls::Calls,
    identity::Identity,
    memory::{ArenaLimits, Inbox, Outbox, Releases},
    metrics::Metrics,
    process::Process,
    readiness::Questions,
    socket::{Received, Socket},
    streams::Streams,
    wake::Wake,
    wire::{Outgoing, kind},
};

/// The server's side of a worker. Shared by the instance, the side thread, and the answers to calls.
pub(crate) struct Link {
    pub identity: Identity,
    pub work: Socket,
    pub side: Socket,
    pub inbox: Inbox,
    pub outbox: Outbox,
    pub releases: Arc<Releases>,
    pub wake: Arc<Wake>,
    pub streams: Streams,
    pub calls: Calls,
    pub questions: Questions,
    pub metrics: Metrics,
    pub server: ServerAccess,
    /// `None`: the worker only completes a configuration.
    pub config: Option<Arc<ModelConfig>>,
    pub process: OnceLock<Process>,
    /// Packets for `side` that found no room.
    queue: Mutex<VecDeque<Vec<u8>>>,
    /// Counts large tensors to the worker: how the side thread sees that memory is in use.
    pub activity: AtomicU64,
    alarm: InstanceAlarm,
    death: OnceLock<Error>,
    is_ending: AtomicBool,
}

/// The worker's ends of the sockets; its arenas are shared.
pub(crate) struct WorkerEnds {
    pub work: OwnedFd,
    pub side: OwnedFd,
}

/// Why no reply came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    TooLate,
    Gone,
}

impl Link {
    pub fn new(
        identity: Identity,
        config: Option<Arc<ModelConfig>>,
        limits: ArenaLimits,
        server: ServerAccess,
        alarm: InstanceAlarm,
    ) -> io::Result<(Self, WorkerEnds)> {
        let (work, work_end) = Socket::pair()?;
        let (side, side_end) = Socket::pair()?;
        let wake = Arc::new(Wake::new()?);
        let hurry = wake.clone();
        let link = Self {
            identity,
            work,
            side,
            inbox: Inbox::new(limits)?,
            outbox: Outbox::new(limits)?,
            releases: Arc::new(Releases::new(move || hurry.wake())),
            wake,
            streams: Streams::default(),
            calls: Calls::default(),
            questions: Questions::default(),
            metrics: Metrics::default(),
            server,
            config,
            process: OnceLock::new(),
            queue: Mutex::default(),
            activity: AtomicU64::new(0),
            alarm,
            death: OnceLock::new(),
            is_ending: AtomicBool::new(false),
        };
        Ok((link, WorkerEnds { work: work_end, side: side_end }))
    }

    /// Sends to the worker's main thread, which waits for it. Never blocks: there is always room for one
    /// message.
    pub fn send_work(&self, message: &Outgoing) -> Result<()> {
        match self.try_send_work(message)? {
            true => Ok(()),
            // Not reading what it should.
            false => Err(self.bury(Some("it does not take its messages"))),
        }
    }

    /// [`Link::send_work`] while others may wait there already. False: there is no room yet.
    pub fn try_send_work(&self, message: &Outgoing) -> Result<bool> {
        let packet = self.seal(message)?;
        self.work.try_send(&packet.parts(message)).map_err(|_| self.bury(None))
    }

    /// Sends to the worker's side thread. Never blocks; a packet that finds no room goes when there is.
    pub fn send_side(&self, message: &Outgoing) -> Result<()> {
        let packet = self.seal(message)?;
        let mut queue = self.queue();
        if queue.is_empty() {
            match self.side.try_send(&packet.parts(message)) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The worker is gone, which the side thread finds out.
                Err(_) => return Ok(()),
            }
        }
        queue.push_back(packet.bytes(message));
        drop(queue);
        self.wake.wake();
        Ok(())
    }

    /// Sends what waited for room. False: something still waits.
    pub fn send_queued(&self) -> bool {
        let mut queue = self.queue();
        while let Some(packet) = queue.front() {
            match self.side.try_send(&[IoSlice::new(packet)]) {
                Ok(false) => return false,
                Ok(true) | Err(_) => {
                    queue.pop_front();
                }
            }
        }
        true
    }

    pub fn has_queued(&self) -> bool {
        !self.queue().is_empty()
    }

    /// Gives blocks back to the worker that wait for a message to ride on.
    pub fn send_releases(&self) {
        while !self.releases.is_empty() {
            if self.send_side(&Outgoing::new(kind::RELEASE_TO_WORKER, 0)).is_err() {
                return;
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the worker's next packet on `work`, the first `awake` without sleeping.
    pub fn receive_reply(
        &self,
        buffer: &mut [u8],
        awake: Duration,
    ) -> std::result::Result<usize, Silence> {
        if !awake.is_zero() {
            let until = Instant::now() + awake;
            while Instant::now() < until {
                if let Ok(Received::Packet(length)) = self.work.try_receive(buffer) {
                    return Ok(length);
                }
                thread::yield_now();
            }
        }
        // One call instead of three; the side thread shuts the socket down when the process has ended.
        match self.work.receive(buffer) {
            Ok(Received::Packet(length)) => Ok(length),
            _ => Err(Silence::Gone),
        }
    }

    /// Waits for the worker's next packet on `work`, until the deadline.
    pub fn receive_work(
        &self,
        buffer: &mut [u8],
        deadline: Option<Instant>,
    ) -> std::result::Result<usize, Silence> {
        loop {
            match self.work.try_receive(buffer) {
                Ok(Received::Packet(length)) => return Ok(length),
                Ok(Received::Nothing) => {}
                Ok(Received::End) | Err(_) => return Err(Silence::Gone),
            }
            if self.has_ended_when_quiet(deadline)? {
                // What it said at last is still there.
                return match self.work.try_receive(buffer) {
                    Ok(Received::Packet(length)) => Ok(length),
                    _ => Err(Silence::Gone),
                };
            }
        }
    }

    /// Sleeps until `work` has something or the process has ended; true in the latter case.
    fn has_ended_when_quiet(
        &self,
        deadline: Option<Instant>,
    ) -> std::result::Result<bool, Silence> {
        let Some(process) = self.process.get() else { return Err(Silence::Gone) };
        let timeout = match deadline {
            None => None,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Silence::TooLate);
                }
                left.try_into().ok()
            }
        };
        let mut watched =
            [PollFd::new(&self.work, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
        match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Silence::Gone),
        }
        let [work, process] = watched.map(|w| !w.revents().is_empty());
        Ok(process && !work)
    }

    /// Waits until the process has ended. False: it has not when `deadline` came.
    pub fn wait_for_end(&self, deadline: Instant) -> bool {
        let Some(process) = self.process.get() else { return true };
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(process, PollFlags::IN)];
        rustix::event::poll(&mut watched, left.try_into().ok().as_ref()).is_ok_and(|n| n > 0)
    }

    /// Ends the worker, if it still lives. `cause`: why it must not go on; `None`: it went by itself.
    /// Gives the error for everything that was under way.
    pub fn bury(&self, cause: Option<&str>) -> Error {
        let death = self.death.get_or_init(|| {
            let ending = self.process.get().and_then(Process::end);
            let ending = ending.map_or_else(|| "ended".to_owned(), |e| e.to_string());
            let reason = cause.map_or(ending, |cause| format!("was stopped: {cause}"));
            let text =
                format!("the Python worker of {} {reason}; it is being restarted", self.identity);
            let error = Error::unavailable(text);
            if !self.is_ending() {
                log::error!("{error}");
                // Before any request has its answer: the next one must not come to this worker.
                self.alarm.raise(error.clone());
            }
            error
        });
        death.clone()
    }

    /// The error, when the worker is no more.
    pub fn death(&self) -> Option<&Error> {
        self.death.get()
    }

    /// From here on the end of the worker is nothing to tell.
    pub fn expect_end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// From here on it is.
    pub fn expect_life(&self) {
        self.is_ending.store(false, Ordering::Release);
    }

    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// After the last message of the worker: everything under way fails, and the scheduler is told.
    pub fn fall_silent(&self) {
        let error = self.bury(None);
        self.streams.fail_all(&error);
        self.calls.cancel_all();
        self.questions.clear();
        self.metrics.clear();
        self.queue().clear();
        if !self.is_ending() {
            self.alarm.raise(error);
        }
    }
}

/// Descriptors the worker inherits, in the order of its command line.
pub(crate) fn descriptors<'a>(
    link: &'a Link,
    ends: &'a WorkerEnds,
) -> [std::os::fd::BorrowedFd<'a>; 4] {
    [ends.work.as_fd(), ends.side.as_fd(), link.inbox.as_fd(), link.outbox.as_fd()]
}
