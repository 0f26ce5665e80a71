//! The thread beside each worker: handles its events, logs what it prints, and notices its end.

use std::{
    process::{ChildStderr, ChildStdout},
    sync::Arc,
    time::{Duration, Instant},
};

use log::Level;
use rustix::event::{PollFd, PollFlags};

use crate::{
    connection::{Connection, Services},
    events,
    printed::PrintedLines,
    process::{OutputPipes, Process},
    process_tree::memory_of_tree,
    transport::{Message, SocketRead},
    watchdog::{ReplaceReason, Watchdog, WorkerSnapshot, is_stopped},
    wire::{OutgoingMessage, PACKET_LIMIT, ProtocolError, kind},
};

/// How often a worker is looked at that has work, or shared memory that may be idle.
const TICK: Duration = Duration::from_secs(1);
/// How often one is looked at that has neither.
const IDLE_TICK: Duration = Duration::from_secs(3);
/// Idle ticks until unused memory goes back to the kernel.
const TICKS_UNTIL_TRIM: u32 = 3;
/// Events handled before the other descriptors are polled again.
const MAX_EVENTS_PER_POLL: usize = 64;

pub(crate) struct EventThread<S> {
    connection: Arc<Connection<S>>,
    stdout: Option<PrintedLines<ChildStdout>>,
    stderr: PrintedLines<ChildStderr>,
    is_stderr_open: bool,
    buffer: Vec<u8>,
    /// Use of the shared memory at the last tick.
    last_uses: u64,
    idle_ticks: u32,
    watchdog: Watchdog,
    last_tick: Instant,
}

impl<S: Services> EventThread<S> {
    pub fn new(connection: Arc<Connection<S>>, output: OutputPipes) -> Self {
        Self {
            watchdog: Watchdog::new(connection.limits),
            last_tick: Instant::now(),
            connection,
            stdout: Some(PrintedLines::new(output.stdout, Level::Info)),
            stderr: PrintedLines::new(output.stderr, Level::Warn),
            is_stderr_open: true,
            buffer: vec![0; PACKET_LIMIT],
            last_uses: 0,
            idle_ticks: 0,
        }
    }

    /// Serves the worker until its process has ended; the last lines it wrote to stderr.
    pub fn run(mut self) -> String {
        while let Some(ready) = self.poll() {
            self.pass_on_output(ready);
            if ready.is_woken {
                self.connection.waker.clear();
            }
            if let Err(malformed) = self.handle_events(MAX_EVENTS_PER_POLL) {
                self.connection.lifecycle.mark_dead(Some(&malformed.to_string()));
            }
            self.connection.channels.flush();
            if self.connection.memory.releases.are_many() {
                self.connection.channels.send_releases();
            }
            if self.is_tick_due() {
                self.tick();
            }
            if ready.has_ended {
                break;
            }
        }
        self.finish()
    }

    /// After the end: what was sent and printed before it still counts.
    fn finish(mut self) -> String {
        // First what is left of the process group, so that nothing is written any more.
        self.connection.lifecycle.mark_dead(None);
        // A process that left the group may still hold the other end open.
        self.connection.channels.close();
        let _ = self.handle_events(usize::MAX);
        self.pass_on_output(ReadySources { stdout: true, stderr: true, ..ReadySources::default() });
        self.connection.on_disconnect();
        self.stderr.last_lines()
    }

    /// Waits until there is something to do. `None`: polling failed.
    #[expect(clippy::disallowed_methods, reason = "the thread waits in `poll`, in real time")]
    fn poll(&self) -> Option<ReadySources> {
        let connection = &*self.connection;
        let process = connection.lifecycle.process()?;
        let mut watched = vec![
            PollFd::new(process, PollFlags::IN),
            PollFd::new(&connection.waker, PollFlags::IN),
            connection.channels.poll_events(),
        ];
        let stdout = self.stdout.as_ref();
        let stderr = self.is_stderr_open.then_some(&self.stderr);
        watched.extend(stdout.map(|p| PollFd::new(&p.stream, PollFlags::IN)));
        watched.extend(stderr.map(|p| PollFd::new(&p.stream, PollFlags::IN)));
        let left = |tick: Duration| tick.saturating_sub(self.last_tick.elapsed());
        let line = [stdout.and_then(PrintedLines::wait_left), self.stderr.wait_left()];
        let next = line.into_iter().flatten().chain(self.interval().map(left)).min();
        let timeout = next.and_then(|left| left.try_into().ok());
        match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        let is_ready = |i: usize| watched.get(i).is_some_and(|w| !w.revents().is_empty());
        Some(ReadySources {
            has_ended: is_ready(0),
            is_woken: is_ready(1),
            stdout: stdout.is_some() && is_ready(3),
            stderr: stderr.is_some() && is_ready(if stdout.is_some() { 4 } else { 3 }),
        })
    }

    fn pass_on_output(&mut self, ready: ReadySources) {
        let identity = self.connection.lifecycle.identity();
        if ready.stdout && self.stdout.as_mut().is_some_and(|lines| !lines.pass_on(identity)) {
            self.stdout = None;
        }
        if ready.stderr {
            self.is_stderr_open = self.stderr.pass_on(identity);
        }
        if let Some(stdout) = &mut self.stdout {
            stdout.pass_on_late_start(identity);
        }
        self.stderr.pass_on_late_start(identity);
    }

    fn handle_events(&mut self, limit: usize) -> Result<(), ProtocolError> {
        for _ in 0..limit {
            let length = match self.connection.channels.try_receive_event(&mut self.buffer) {
                Ok(SocketRead::Packet(length)) => length,
                Ok(SocketRead::Nothing) => return Ok(()),
                Ok(SocketRead::End) | Err(_) => return self.expect_exit_after_close(),
            };
            let packet = self.buffer.get(..length).unwrap_or_default();
            let connection = &self.connection;
            Message::open(packet, &connection.memory, |message| {
                events::handle(connection, message)
            })?;
        }
        Ok(())
    }

    /// The socket closes just before the process ends. A worker that closes it and goes on running is of no use.
    fn expect_exit_after_close(&self) -> Result<(), ProtocolError> {
        let has_ended = self.connection.lifecycle.wait_for_exit(Instant::now() + TICK);
        has_ended.then_some(()).ok_or(ProtocolError("it closed its connection"))
    }

    /// Between two ticks; `None`: there is nothing to look at.
    fn interval(&self) -> Option<Duration> {
        match self.connection.waker.is_ticking() {
            true => Some(TICK),
            false => self.watchdog.is_on().then_some(IDLE_TICK),
        }
    }

    /// By the clock: a worker that sends events without pause is looked at all the same.
    #[expect(clippy::disallowed_methods, reason = "the thread waits in `poll`, in real time")]
    fn is_tick_due(&self) -> bool {
        self.interval().is_some_and(|tick| self.last_tick.elapsed() >= tick)
    }

    fn tick(&mut self) {
        // However late this tick is: a server that was itself stopped does not blame the worker for that.
        let elapsed = self.interval().unwrap_or(TICK);
        self.last_tick = Instant::now();
        self.watch(elapsed);
        let connection = self.connection.clone();
        if !connection.waker.is_ticking() || !self.is_memory_trimmed() {
            return;
        }
        connection.waker.stop_ticking();
        // A request that was sent just before saw that it was ticking.
        if connection.requests.has_any() {
            connection.waker.start_ticking();
        }
    }

    fn watch(&mut self, elapsed: Duration) {
        let Connection { lifecycle, requests, channels, limits, .. } = &*self.connection;
        let process = lifecycle.process().map(Process::id);
        let overdue = self.watchdog.look(WorkerSnapshot {
            elapsed,
            is_busy: requests.has_any() && !channels.has_reply(),
            progress: requests.progress(),
            is_stopped: process.is_some_and(is_stopped),
            is_abandoned: self.connection.is_abandoned(),
            memory: limits.memory.and(process).map(memory_of_tree),
        });
        let Some(overdue) = overdue else { return };
        if matches!(overdue, ReplaceReason::Abandoned { .. }) {
            log::warn!("{} is stopped: {overdue}", lifecycle.identity());
            // Nothing is to take its place.
            lifecycle.expect_exit();
        }
        lifecycle.mark_dead(Some(&overdue.to_string()));
    }

    /// Gives the shared memory of an idle worker back to the kernel. True: no request and no memory is in use.
    fn is_memory_trimmed(&mut self) -> bool {
        let connection = &*self.connection;
        connection.channels.send_releases();
        let uses = connection.memory.uses();
        let is_idle = std::mem::replace(&mut self.last_uses, uses) == uses;
        self.idle_ticks = if is_idle { self.idle_ticks + 1 } else { 0 };
        if self.idle_ticks < TICKS_UNTIL_TRIM
            || connection.requests.has_any()
            || !connection.memory.trim()
        {
            return false;
        }
        let is_sent = connection.channels.send_event(&OutgoingMessage::new(kind::TRIM, 0)).is_ok();
        if is_sent {
            self.idle_ticks = 0;
        }
        is_sent
    }
}

#[derive(Clone, Copy, Default)]
struct ReadySources {
    has_ended: bool,
    is_woken: bool,
    stdout: bool,
    stderr: bool,
}
