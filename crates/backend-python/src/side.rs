//! The thread beside each worker: takes what comes at any time, logs what is printed, sees the end.

use std::{
    process::{ChildStderr, ChildStdout},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use log::{Level, Record};
use rustix::event::{PollFd, PollFlags};
use serde_json::Value;

use crate::{
    asks, calls,
    identity::Identity,
    link::Link,
    output::Printed,
    outputs,
    packing::Message,
    process::Output,
    socket::Received,
    wire::{Malformed, Outgoing, PACKET_LIMIT, Reader, ResponseHead, flag, kind},
};

/// Models' lines. The log takes what is not a warning from this program's own modules only.
const LOG_TARGET: &str = "galatea_backend_python::model_code";
/// How often memory that may be idle is looked after.
const TICK: Duration = Duration::from_secs(1);
/// Quiet ticks until unused memory goes back to the kernel.
const TICKS_UNTIL_TRIM: u32 = 3;
/// Messages taken before something else gets its turn.
const MESSAGES_AT_ONCE: usize = 64;

pub(crate) struct Side {
    link: Arc<Link>,
    stdout: Option<Printed<ChildStdout>>,
    stderr: Printed<ChildStderr>,
    is_stderr_open: bool,
    buffer: Vec<u8>,
    seen_activity: u64,
    quiet_ticks: u32,
}

impl Side {
    pub fn new(link: Arc<Link>, output: Output) -> Self {
        Self {
            link,
            stdout: Some(Printed::new(output.stdout, Level::Info)),
            stderr: Printed::new(output.stderr, Level::Warn),
            is_stderr_open: true,
            buffer: vec![0; PACKET_LIMIT],
            seen_activity: 0,
            quiet_ticks: 0,
        }
    }

    /// Serves the worker until its process has ended. Gives the last lines it wrote to stderr.
    pub fn serve(mut self) -> String {
        let identity = self.link.identity.clone();
        while let Some(ready) = self.wait() {
            self.print(ready, &identity);
            if ready.is_woken {
                self.link.wake.clear();
            }
            let outcome = self.take_messages(MESSAGES_AT_ONCE);
            if let Err(malformed) = outcome {
                self.link.bury(Some(&malformed.to_string()));
            }
            self.link.send_queued();
            if self.link.releases.are_many() {
                self.link.send_releases();
            }
            if ready.is_tick {
                self.look_after_memory();
            }
            if ready.has_ended {
                break;
            }
        }
        self.finish(&identity)
    }

    /// After the end: what was said and printed before it still counts.
    fn finish(mut self, identity: &Identity) -> String {
        // What is left of the process group goes first, so that nobody writes any more.
        self.link.bury(None);
        // A process that left the group may hold the other end open still.
        self.link.work.shut_down();
        let _ = self.take_messages(usize::MAX);
        let everything = Ready { stdout: true, stderr: true, ..Ready::default() };
        self.print(everything, identity);
        self.link.fall_silent();
        self.stderr.last_lines()
    }

    /// `None`: nothing can be waited for any more.
    fn wait(&self) -> Option<Ready> {
        let link = &*self.link;
        let process = link.process.get()?;
        let side = match link.has_queued() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut watched = vec![
            PollFd::new(process, PollFlags::IN),
            PollFd::new(&link.wake, PollFlags::IN),
            PollFd::new(&link.side, side),
        ];
        let stdout = self.stdout.as_ref();
        let stderr = self.is_stderr_open.then_some(&self.stderr);
        watched.extend(stdout.map(|p| PollFd::new(p.stream(), PollFlags::IN)));
        watched.extend(stderr.map(|p| PollFd::new(p.stream(), PollFlags::IN)));
        let timeout = link.wake.is_ticking().then(|| TICK.try_into().ok()).flatten();
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

    fn print(&mut self, ready: Ready, identity: &Identity) {
        if ready.stdout && self.stdout.as_mut().is_some_and(|p| !p.read(identity)) {
            self.stdout = None;
        }
        if ready.stderr {
            self.is_stderr_open = self.stderr.read(identity);
        }
    }

    fn take_messages(&mut self, most: usize) -> Result<(), Malformed> {
        for _ in 0..most {
            let length = match self.link.side.try_receive(&mut self.buffer) {
                Ok(Received::Packet(length)) => length,
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) | Err(_) => return self.see_end(),
            };
            let packet = self.buffer.get(..length).unwrap_or_default();
            self.link.open(packet, |message| take(&self.link, message))?;
        }
        Ok(())
    }

    /// The socket closes just before the process ends. One that closes it and lives on is of no use.
    fn see_end(&self) -> Result<(), Malformed> {
        let has_ended = self.link.wait_for_end(Instant::now() + TICK);
        has_ended.then_some(()).ok_or(Malformed("it closed its connection"))
    }

    /// Nothing of a worker that is idle stays where nobody needs it.
    fn look_after_memory(&mut self) {
        let link = &*self.link;
        link.send_releases();
        let activity = link.activity.load(Ordering::Relaxed);
        let is_quiet = std::mem::replace(&mut self.seen_activity, activity) == activity;
        self.quiet_ticks = if is_quiet { self.quiet_ticks + 1 } else { 0 };
        if self.quiet_ticks < TICKS_UNTIL_TRIM || !link.releases.are_all_back() {
            return;
        }
        if link.inbox.trim() && link.send_side(&Outgoing::new(kind::TRIM, 0)).is_ok() {
            self.quiet_ticks = 0;
            link.wake.stop_ticking();
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

fn take(link: &Arc<Link>, message: &Message<'_>) -> Result<(), Malformed> {
    let header = message.packet.header;
    match header.kind {
        kind::RESPONSE => respond(link, message),
        kind::INFER => calls::begin(link, message),
        kind::CANCEL => {
            link.calls.cancel(header.id);
            Ok(())
        }
        kind::LOG => asks::read(message).map(|entry| log_entry(header.id, &entry)),
        kind::ASK => asks::begin(link, message),
        kind::TELL => asks::read(message).map(|told| link.metrics.tell(&told)),
        kind::READINESS => {
            link.questions.answer(header.id, header.count == 1 && !header.has(flag::ERROR));
            Ok(())
        }
        kind::RELEASE_TO_SERVER | kind::TRIMMED => Ok(()),
        _ => Err(Malformed("its kind is unknown")),
    }
}

fn respond(link: &Link, message: &Message<'_>) -> Result<(), Malformed> {
    let header = message.packet.header;
    let answer = if header.has(flag::EMPTY) {
        None
    } else {
        let head = ResponseHead::read(&mut Reader::new(message.packet.payload.meta))?;
        let wanted = link.streams.get(header.id).map(|pending| pending.outputs.clone());
        Some(outputs::answer(link, &head, message, wanted.as_deref())?)
    };
    link.streams.respond(header.id, answer, header.has(flag::FINAL));
    Ok(())
}

fn log_entry(level: u64, entry: &Value) {
    let level = match level {
        0 => Level::Info,
        1 => Level::Warn,
        2 => Level::Error,
        _ => Level::Debug,
    };
    let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let line = entry.get("line").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    if level > log::max_level() {
        return;
    }
    log::logger().log(
        &Record::builder()
            .level(level)
            .target(LOG_TARGET)
            .file(Some(text("file")))
            .line(line)
            .args(format_args!("{}", text("message")))
            .build(),
    );
}
