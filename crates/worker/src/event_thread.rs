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
    process::OutputPipes,
    transport::Received,
    wire::{Malformed, Outgoing, PACKET_LIMIT, kind},
};

/// How often shared memory that may be idle is checked.
const TICK: Duration = Duration::from_secs(1);
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
}

impl<S: Services> EventThread<S> {
    pub fn new(connection: Arc<Connection<S>>, output: OutputPipes) -> Self {
        Self {
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
            self.log_output(ready);
            if ready.is_woken {
                self.connection.waker.clear();
            }
            if let Err(malformed) = self.handle_events(MAX_EVENTS_PER_POLL) {
                self.connection.lifecycle.mark_dead(Some(&malformed.to_string()));
            }
            self.connection.channels.flush();
            if self.connection.memory.releases().are_many() {
                self.connection.channels.send_releases();
            }
            if ready.is_tick {
                self.trim_memory();
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
        self.connection.channels.close_commands();
        let _ = self.handle_events(usize::MAX);
        self.log_output(Ready { stdout: true, stderr: true, ..Ready::default() });
        self.connection.on_disconnect();
        self.stderr.last_lines()
    }

    /// Waits until there is something to do. `None`: polling failed.
    fn poll(&self) -> Option<Ready> {
        let connection = &*self.connection;
        let process = connection.lifecycle.process()?;
        let events = connection.channels.events_fd();
        let interest = match connection.channels.has_queued() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut watched = vec![
            PollFd::new(process, PollFlags::IN),
            PollFd::new(&connection.waker, PollFlags::IN),
            PollFd::from_borrowed_fd(events, interest),
        ];
        let stdout = self.stdout.as_ref();
        let stderr = self.is_stderr_open.then_some(&self.stderr);
        watched.extend(stdout.map(|p| PollFd::new(p.stream(), PollFlags::IN)));
        watched.extend(stderr.map(|p| PollFd::new(p.stream(), PollFlags::IN)));
        let timeout = connection.waker.is_ticking().then(|| TICK.try_into().ok()).flatten();
        let is_tick = match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(count) => count == 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(_) => return None,
        };
        let is_ready = |i: usize| watched.get(i).is_some_and(|w| !w.revents().is_empty());
        Some(Ready {
            has_ended: is_ready(0),
            is_woken: is_ready(1),
            is_tick,
            stdout: stdout.is_some() && is_ready(3),
            stderr: stderr.is_some() && is_ready(if stdout.is_some() { 4 } else { 3 }),
        })
    }

    fn log_output(&mut self, ready: Ready) {
        let identity = self.connection.lifecycle.identity();
        if ready.stdout && self.stdout.as_mut().is_some_and(|lines| !lines.log(identity)) {
            self.stdout = None;
        }
        if ready.stderr {
            self.is_stderr_open = self.stderr.log(identity);
        }
    }

    fn handle_events(&mut self, limit: usize) -> Result<(), Malformed> {
        for _ in 0..limit {
            let length = match self.connection.channels.try_receive_event(&mut self.buffer) {
                Ok(Received::Packet(length)) => length,
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) | Err(_) => return self.expect_exit_after_close(),
            };
            let packet = self.buffer.get(..length).unwrap_or_default();
            self.connection.open(packet, |message| events::handle(&self.connection, message))?;
        }
        Ok(())
    }

    /// The socket closes just before the process ends. A worker that closes it and goes on running is of no use.
    fn expect_exit_after_close(&self) -> Result<(), Malformed> {
        let has_ended = self.connection.lifecycle.wait_for_exit(Instant::now() + TICK);
        has_ended.then_some(()).ok_or(Malformed("it closed its connection"))
    }

    /// Gives the shared memory of an idle worker back to the kernel.
    fn trim_memory(&mut self) {
        let connection = &*self.connection;
        connection.channels.send_releases();
        let uses = connection.memory.uses();
        let is_idle = std::mem::replace(&mut self.last_uses, uses) == uses;
        self.idle_ticks = if is_idle { self.idle_ticks + 1 } else { 0 };
        if self.idle_ticks < TICKS_UNTIL_TRIM || !connection.memory.trim() {
            return;
        }
        if connection.channels.send_event(&Outgoing::new(kind::TRIM, 0)).is_ok() {
            self.idle_ticks = 0;
            connection.waker.stop_ticking();
        }
    }
}

/// What there is to do.
#[derive(Clone, Copy, Default)]
struct Ready {
    has_ended: bool,
    is_woken: bool,
    is_tick: bool,
    stdout: bool,
    stderr: bool,
}
