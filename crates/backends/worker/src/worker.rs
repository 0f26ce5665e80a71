//! A worker from its start to its end.

use std::{
    os::fd::AsFd,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use galatea_backend::InstanceAlarm;
use galatea_config::ModelConfig;
use galatea_telemetry::logger;
use galatea_types::{Code, Error, Result};
use serde_json::Value;

use crate::{
    connection::{Connection, Services},
    exception::with_traceback,
    lifecycle::{Lifecycle, WorkerIdentity},
    memory::MemoryRules,
    outputs::ReportedOutputs,
    process::{ExitReason, Process},
    program::Program,
    spawn::{EventThreadHandle, spawn},
    spin::SpinLimit,
    transport::{Message, ReceiveError},
    watchdog::{TimeLimit, WorkLimits},
    wire::{Failure, OutgoingMessage, PACKET_LIMIT, ProtocolError, code_from_number, flag, kind},
};

/// The settings that a worker is started with.
pub struct WorkerOptions<S> {
    /// The model and instance that it runs.
    pub identity: WorkerIdentity,
    /// See [`Connection::config`].
    pub config: Option<Arc<ModelConfig>>,
    /// The outputs of the model that were logged already.
    pub told_outputs: Arc<ReportedOutputs>,
    /// The program to execute.
    pub program: Arc<Program>,
    /// Bounds of both arenas, and the budget that their content counts to.
    pub memory: MemoryRules,
    /// Time limit for starting the program, and for finalizing the model.
    pub timeout: Duration,
    /// Name of the setting with that limit, for errors.
    pub timeout_setting: &'static str,
    /// Time limit for initializing the model.
    pub initialization: TimeLimit,
    /// Limits of the worker's work.
    pub limits: WorkLimits,
    /// The server's services for the worker.
    pub services: S,
    /// Alarm that is raised at its end.
    pub alarm: InstanceAlarm,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReplyWait {
    Until(Instant),
    Sleep,
    /// Spins first while that has been faster: see [`SpinLimit`].
    SpinThenSleep,
}

/// A running worker. Dropping it finalizes the model and ends the process.
pub struct Worker<S: Services> {
    /// The connection, for messages at any time.
    pub connection: Arc<Connection<S>>,
    program: Arc<Program>,
    timeout: Duration,
    timeout_setting: &'static str,
    initialization: TimeLimit,
    /// `None` once it has been joined.
    event_thread: Option<EventThreadHandle>,
    buffer: Vec<u8>,
    spin: SpinLimit,
    is_ready: bool,
}

impl<S: Services> Worker<S> {
    /// Starts the program and waits until it runs the worker's code.
    pub fn start(options: WorkerOptions<S>) -> Result<Self> {
        let WorkerOptions {
            identity,
            config,
            told_outputs,
            memory,
            services,
            alarm,
            program,
            limits,
            ..
        } = options;
        let no_resources = format!("cannot start a {} for {identity}", identity.role);
        let lifecycle = Lifecycle::new(identity, alarm);
        let (connection, ends) =
            Connection::new(lifecycle, config, told_outputs, memory, services, limits)
                .map_err(|error| Error::unavailable(format!("{no_resources}: {error}")))?;
        let connection = Arc::new(connection);
        let observer: Weak<Connection<S>> = Arc::downgrade(&connection);
        logger::observe(observer);
        let event_thread = spawn(&connection, ends, &program)?;
        let mut worker = Self {
            connection,
            program,
            timeout: options.timeout,
            timeout_setting: options.timeout_setting,
            initialization: options.initialization,
            event_thread: Some(event_thread),
            buffer: vec![0; PACKET_LIMIT],
            spin: SpinLimit::default(),
            is_ready: false,
        };
        worker.await_hello()?;
        Ok(worker)
    }

    fn await_hello(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        let hello = self.receive(ReplyWait::Until(deadline), |message| {
            expect(message, kind::HELLO)?;
            let text = message.packet.text()?.to_owned();
            Ok(if message.packet.header.has(flag::ERROR) { Err(text) } else { Ok(text) })
        });
        match hello {
            Ok(Ok(hello)) => {
                let lifecycle = &self.connection.lifecycle;
                let process = lifecycle.process().map(Process::id).unwrap_or_default();
                let (identity, description) = (lifecycle.identity(), &self.program.description);
                log::debug!("{identity}: process {process} runs {description}: {hello}");
                Ok(())
            }
            Ok(Err(text)) => Err(self.start_error(&text)),
            Err(ReceiveError::TimedOut) => {
                let seconds = self.timeout.as_secs();
                let setting = self.timeout_setting;
                let text = format!("it did not start within {seconds} s ({setting})");
                Err(self.start_error(&text))
            }
            Err(ReceiveError::Disconnected) => {
                let reason = self.connection.lifecycle.error().map(|e| e.message().to_owned());
                let reason = reason.filter(|r| r.contains(": malformed")).unwrap_or_default();
                Err(self.start_error(&reason))
            }
        }
    }

    /// Ends a worker that did not start. The error has the reason: `text`, or its exit and its last lines.
    fn start_error(&mut self, text: &str) -> Error {
        let reason = match (text, self.end()) {
            ("", (Some(exit), last_lines)) => format!("it {exit}{last_lines}"),
            (text, _) => text.to_owned(),
        };
        let (identity, program) = (self.connection.lifecycle.identity(), &self.program);
        Error::internal(format!(
            "the {} of {identity} failed to start with {} ({}): {reason}{}",
            identity.role,
            program.path.display(),
            program.description,
            program.isolation_hint()
        ))
    }

    /// Kills the rest of the process. Returns how it ended, and the last lines of stderr, each after a line break.
    fn end(&mut self) -> (Option<ExitReason>, String) {
        let exit = self.connection.lifecycle.kill();
        let last_lines = self.event_thread.take().and_then(|thread| thread.join().ok());
        (exit, last_lines.unwrap_or_default())
    }

    /// Sends a command and waits for its reply, which has the kind after it, at most as long as initializing may take. An
    /// exception of the model's code is an error with the traceback as its source.
    pub fn request(&mut self, kind: u8, settings: &Value) -> Result<Value> {
        self.connection.send_command(&OutgoingMessage::with_text(kind, &settings.to_string()))?;
        let deadline = self.initialization.limit.and_then(|l| Instant::now().checked_add(l));
        let wait = deadline.map_or(ReplyWait::Sleep, ReplyWait::Until);
        let reply = self.receive(wait, |message| {
            expect(message, kind + 1)?;
            if message.packet.header.has(flag::ERROR) {
                let failure = Failure::read(message.packet.payload)?;
                // A worker in Python omits the number.
                let number = u8::try_from(message.packet.header.count).unwrap_or(u8::MAX);
                let code = code_from_number(number)?.unwrap_or(Code::Internal);
                let error = Error::new(code, failure.message);
                return Ok(Err(with_traceback(error, failure.traceback)));
            }
            let value = serde_json::from_slice(message.packet.payload.meta);
            value.map(Ok).map_err(|_| ProtocolError("it is not JSON"))
        });
        reply.unwrap_or_else(|error| Err(self.initialization_error(error)))
    }

    fn initialization_error(&mut self, error: ReceiveError) -> Error {
        let (exit, last_lines) = self.end();
        let identity = self.connection.lifecycle.identity();
        let TimeLimit { limit, setting } = self.initialization;
        Error::internal(match (error, limit) {
            (ReceiveError::TimedOut, Some(limit)) => format!(
                "the model did not initialize in the {} of {identity} within {} s ({setting}){last_lines}",
                identity.role,
                limit.as_secs_f64()
            ),
            _ => {
                let exit = exit.map_or_else(String::new, |exit| exit.to_string());
                format!(
                    "the {} of {identity} {exit} before the model was ready{last_lines}",
                    identity.role
                )
            }
        })
    }

    /// Marks the model as initialized: from now on the end of the worker is a failure.
    pub fn set_ready(&mut self) -> Result<()> {
        self.is_ready = true;
        let lifecycle = &self.connection.lifecycle;
        lifecycle.expect_running();
        // The worker may have died just before, when its end was not reported.
        lifecycle.error().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Waits for the next reply. A malformed one ends the worker.
    #[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
    pub(crate) fn receive<T>(
        &mut self,
        wait: ReplyWait,
        read: impl FnOnce(&Message<'_>) -> Result<T, ProtocolError>,
    ) -> Result<T, ReceiveError> {
        let Connection { channels, lifecycle, memory, .. } = &*self.connection;
        let length = match (wait, lifecycle.process()) {
            (ReplyWait::Until(deadline), Some(process)) => {
                channels.receive_reply_until(&mut self.buffer, deadline, process.as_fd())
            }
            (ReplyWait::Until(_), None) => Err(ReceiveError::Disconnected),
            (ReplyWait::Sleep, _) => channels.receive_reply(&mut self.buffer, Duration::ZERO),
            (ReplyWait::SpinThenSleep, _) => {
                let started = Instant::now();
                let length = channels.receive_reply(&mut self.buffer, self.spin.budget());
                self.spin.record(started.elapsed());
                length
            }
        };
        let length = length.inspect_err(|&error| {
            if error == ReceiveError::Disconnected {
                self.mark_dead(None);
            }
        })?;
        let packet = self.buffer.get(..length).unwrap_or_default();
        Message::open(packet, memory, read).map_err(|malformed| {
            self.mark_dead(Some(&malformed.to_string()));
            ReceiveError::Disconnected
        })
    }

    /// Raises the alarm before any request is answered, so that a client's next request waits for the restarted worker.
    fn mark_dead(&self, cause: Option<&str>) {
        let error = self.connection.lifecycle.mark_dead(cause);
        self.connection.lifecycle.raise_alarm(&error);
    }

    /// Lets the model finalize within the limit.
    fn finalize(&mut self) {
        let connection = self.connection.clone();
        connection.requests.wait_until_closed(self.timeout);
        let deadline = Instant::now() + self.timeout;
        if connection.send_command(&OutgoingMessage::new(kind::FINALIZE, 0)).is_err() {
            return;
        }
        // Replies that nobody waits for any more come before it.
        let is_reply = |m: &Message<'_>| match m.packet.header.kind {
            kind::EXECUTED => Ok(true),
            _ => expect(m, kind::FINALIZED).map(|()| false),
        };
        let finalized = loop {
            match self.receive(ReplyWait::Until(deadline), is_reply) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(_) => break false,
            }
        };
        if !finalized {
            let (seconds, identity) = (self.timeout.as_secs(), connection.lifecycle.identity());
            match Instant::now() < deadline {
                true => log::warn!("{identity} ended before it had finished"),
                false => log::warn!("{identity} did not finish within {seconds} s and is killed"),
            }
            return;
        }
        connection.lifecycle.wait_for_exit(deadline);
    }
}

impl<S: Services> Drop for Worker<S> {
    fn drop(&mut self) {
        self.connection.lifecycle.expect_exit();
        if self.is_ready && !self.connection.lifecycle.is_dead() {
            self.finalize();
        }
        self.end();
    }
}

pub(crate) fn expect(message: &Message<'_>, kind: u8) -> Result<(), ProtocolError> {
    let is_expected = message.packet.header.kind == kind;
    is_expected.then_some(()).ok_or(ProtocolError("it is not the reply that was waited for"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;
    use crate::memory::ArenaLimits;
    use crate::sandbox::{IsolationLevel, KernelSupport, Sandbox};

    struct NoServices;

    impl Services for NoServices {
        fn handle(_: &Arc<Connection<Self>>, _: &Message<'_>) -> Result<(), ProtocolError> {
            Err(ProtocolError("its kind is unknown"))
        }

        fn end(&self) {}
    }

    /// The error of starting a shell script as a worker.
    fn start_error(script: &str, seconds: u64) -> String {
        let folder = tempfile::tempdir().expect("folder");
        let python = folder.path().join("python");
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("executable");
        start(python, seconds)
    }

    fn start(python: PathBuf, seconds: u64) -> String {
        start_confined(python, seconds, None)
    }

    fn start_confined(python: PathBuf, seconds: u64, sandbox: Option<Sandbox>) -> String {
        let program = Program {
            role: "interpreter",
            path: python,
            arguments: vec!["/nowhere".into()],
            variables: vec![("TEXT".into(), "last line".into())],
            inherits_variables: true,
            withheld_variables: Vec::new(),
            memory_limit: None,
            sandbox,
            description: "a script".to_owned(),
        };
        let started = Worker::start(WorkerOptions {
            identity: WorkerIdentity {
                role: "Python worker",
                model: "m".into(),
                version: 1,
                instance: Some("m_0_0".to_owned()),
            },
            told_outputs: Arc::default(),
            config: None,
            program: Arc::new(program),
            memory: MemoryRules::of(ArenaLimits { initial: 4096, growth: 4096, max: None }),
            timeout: Duration::from_secs(seconds),
            timeout_setting: "stub-timeout-seconds",
            initialization: TimeLimit::default(),
            limits: WorkLimits::default(),
            services: NoServices,
            alarm: InstanceAlarm::default(),
        });
        started.err().expect("an error").message().to_owned()
    }

    #[test]
    fn the_error_of_an_exited_program_has_its_exit_status() {
        let text = start_error("echo $TEXT >&2; exit 7", 30);
        for part in ["model 'm'", "m_0_0", "a script", "exited with code 7", "last line"] {
            assert!(text.contains(part), "{text}");
        }
        let text = start_error("kill -9 $$", 30);
        assert!(text.contains("SIGKILL"), "{text}");
        let text = start(PathBuf::from("/nowhere/python"), 30);
        assert!(text.contains("'/nowhere/python' cannot be executed"), "{text}");
    }

    /// The sandbox forbids reading the script; without kernel support the script ends by itself.
    #[test]
    fn the_error_of_a_sandboxed_program_mentions_the_sandbox() {
        let folder = tempfile::tempdir().expect("folder");
        let python = folder.path().join("python");
        fs::write(&python, "#!/bin/sh\nexit 7\n").expect("written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("executable");
        let sandbox = Sandbox {
            level: IsolationLevel::Strict,
            readable: Vec::new(),
            writable: Vec::new(),
            secret: Vec::new(),
        };
        let has_landlock = !KernelSupport::detect()
            .gaps(sandbox.level)
            .iter()
            .any(|g| g.starts_with("without Landlock"));
        let text = start_confined(python, 30, Some(sandbox));
        assert!(text.contains("--python-isolation=strict"), "{text}");
        assert_eq!(text.contains("cannot be executed: Permission denied"), has_landlock, "{text}");
    }

    #[test]
    fn a_program_that_sends_no_hello_times_out() {
        let text = start_error("sleep 600 & sleep 600", 1);
        assert!(text.contains("stub-timeout-seconds"), "{text}");
    }

    #[test]
    fn a_program_that_sends_garbage_is_killed() {
        let nonsense = r#"exec python3 -c "import os,sys; os.write(int(sys.argv[1]), b'nonsense')
import time; time.sleep(600)" $2"#;
        let text = start_error(nonsense, 30);
        assert!(text.contains("malformed"), "{text}");
    }
}
