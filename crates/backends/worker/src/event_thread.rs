//! The thread beside each worker: handles its events, logs its output, and notices its end.

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
    printed_lines::PrintedLines,
    process::{OutputPipes, Process},
    process_tree::memory_of_tree,
    transport::{Message, SocketRead},
    watchdog::{ReplaceReason, Watchdog, WorkerSnapshot, is_stopped},
    wire::{OutgoingMessage, PACKET_LIMIT, ProtocolError, kind},
};

/// Interval between checks of a worker that has work, or shared memory that may be idle.
const TICK: Duration = Duration::from_secs(1);
/// Interval between checks of a worker that has neither.
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
    /// Value of `SharedMemory::uses` at the last tick.
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

    /// Serves the worker until its process has ended. Returns the last lines that it wrote to stderr.
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

    /// Handles messages and output that the worker sent before it ended.
    fn finish(mut self) -> String {
        // Kill the rest of the process group first, so that nothing more is written.
        self.connection.lifecycle.mark_dead(None);
        // A process that left the group may still hold the other end open.
        self.connection.channels.close();
        let _ = self.handle_events(usize::MAX);
        self.pass_on_output(ReadySources { stdout: true, stderr: true, ..ReadySources::default() });
        self.connection.on_disconnect();
        self.stderr.last_lines()
    }

    /// Waits until there is something to do. Returns `None` if polling failed.
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

    /// Fails if the process still runs: the socket closes just before its end, and without one a worker is useless.
    fn expect_exit_after_close(&self) -> Result<(), ProtocolError> {
        let has_ended = self.connection.lifecycle.wait_for_exit(Instant::now() + TICK);
        has_ended.then_some(()).ok_or(ProtocolError("it closed its connection"))
    }

    /// Returns the interval between two ticks, or `None` if there is nothing to check.
    fn interval(&self) -> Option<Duration> {
        match self.connection.waker.is_ticking() {
            true => Some(TICK),
            false => self.watchdog.is_on().then_some(IDLE_TICK),
        }
    }

    /// Compares with the clock, so that a worker that sends events without pause is checked too.
    #[expect(clippy::disallowed_methods, reason = "the thread waits in `poll`, in real time")]
    fn is_tick_due(&self) -> bool {
        self.interval().is_some_and(|tick| self.last_tick.elapsed() >= tick)
    }

    fn tick(&mut self) {
        // Counts one interval however late the tick is: a pause of the server itself is not the worker's fault.
        let elapsed = self.interval().unwrap_or(TICK);
        self.last_tick = Instant::now();
        self.watch(elapsed);
        let connection = self.connection.clone();
        if !connection.waker.is_ticking() || !self.is_memory_trimmed() {
            return;
        }
        connection.waker.stop_ticking();
        // A request sent just before found the ticks still running, and did not start them.
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
            // The worker is not replaced.
            lifecycle.expect_exit();
        }
        lifecycle.mark_dead(Some(&overdue.to_string()));
    }

    /// Gives the shared memory of an idle worker back to the kernel. Returns true if no request and no memory is in use.
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
