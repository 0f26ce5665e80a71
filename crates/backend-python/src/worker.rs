//! A worker from its start to its end.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use galatea_backend::{InstanceAlarm, ServerAccess};
use galatea_config::ModelConfig;
use galatea_types::{Error, Result};
use serde_json::Value;

use crate::{
    connection::Connection,
    environment::Environment,
    exception::with_traceback,
    identity::WorkerIdentity,
    memory::ArenaLimits,
    process::Process,
    spawn::{EventThreadHandle, spawn},
    spin::Spin,
    start_error::StartError,
    transport::{Message, ReceiveError},
    wire::{Failure, Malformed, Outgoing, PACKET_LIMIT, flag, kind},
};

/// What a worker is started with.
pub(crate) struct WorkerOptions<'a> {
    pub identity: WorkerIdentity,
    /// `None`: it only completes a configuration.
    pub config: Option<Arc<ModelConfig>>,
    pub environment: Arc<Environment>,
    /// Folder of the worker's own code.
    pub package: &'a Path,
    pub arenas: ArenaLimits,
    /// Limit of starting the interpreter, and of finalizing the model.
    pub timeout: Duration,
    pub server: ServerAccess,
    pub alarm: InstanceAlarm,
}

/// How a reply is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Until(Instant),
    Sleep,
    /// At first without sleeping, where that has been worth it: see [`Spin`].
    SpinThenSleep,
}

/// A running worker. Dropping it finalizes the model and ends the process.
pub(crate) struct Worker {
    connection: Arc<Connection>,
    environment: Arc<Environment>,
    timeout: Duration,
    /// `None` once it has been joined.
    event_thread: Option<EventThreadHandle>,
    buffer: Vec<u8>,
    spin: Spin,
    is_ready: bool,
}

impl Worker {
    /// Starts the interpreter and waits until it runs the worker's code.
    pub fn start(options: WorkerOptions<'_>) -> Result<Self> {
        let identity = options.identity.clone();
        let failed = |error| StartError::NoResources { identity, error };
        let WorkerOptions { config, arenas, server, alarm, environment, .. } = options;
        let (connection, ends) =
            Connection::new(options.identity, config, arenas, server, alarm).map_err(failed)?;
        let connection = Arc::new(connection);
        let event_thread = spawn(&connection, ends, &environment, options.package)?;
        let mut worker = Self {
            connection,
            environment,
            timeout: options.timeout,
            event_thread: Some(event_thread),
            buffer: vec![0; PACKET_LIMIT],
            spin: Spin::default(),
            is_ready: false,
        };
        worker.await_hello()?;
        Ok(worker)
    }

    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn await_hello(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        let hello = self.receive(Wait::Until(deadline), |message| {
            expect(message, kind::HELLO)?;
            let text = message.packet.text()?.to_owned();
            Ok(if message.packet.header.has(flag::ERROR) { Err(text) } else { Ok(text) })
        });
        match hello {
            Ok(Ok(hello)) => {
                let lifecycle = &self.connection.lifecycle;
                let process = lifecycle.process().map(Process::id).unwrap_or_default();
                let (identity, python) = (lifecycle.identity(), &self.environment.description);
                log::debug!("{identity}: process {process} runs {python}: {hello}");
                Ok(())
            }
            Ok(Err(text)) => Err(self.start_error(&text)),
            Err(ReceiveError::TimedOut) => {
                let seconds = self.timeout.as_secs();
                let text = format!("it did not start within {seconds} s (stub-timeout-seconds)");
                Err(self.start_error(&text))
            }
            Err(ReceiveError::Disconnected) => {
                let reason = self.connection.lifecycle.error().map(|e| e.message().to_owned());
                let reason = reason.filter(|r| r.contains(": malformed")).unwrap_or_default();
                Err(self.start_error(&reason))
            }
        }
    }

    /// Ends a worker that did not start. The error has the reason: `text`, or how it ended and what it wrote last.
    fn start_error(&mut self, text: &str) -> Error {
        let exit = self.connection.lifecycle.kill();
        let last_lines = self.join_event_thread();
        let text = match (text, exit) {
            ("", Some(exit)) => format!("it {exit}{last_lines}"),
            (text, _) => text.to_owned(),
        };
        let identity = self.connection.lifecycle.identity().clone();
        let environment = Environment::clone(&self.environment);
        StartError::Failed { identity, environment, reason: text }.into()
    }

    /// Sends a command and waits for its reply, which has the kind after it. An exception of the model's code is an
    /// error with the traceback as its source.
    pub fn request(&mut self, kind: u8, settings: &Value) -> Result<Value> {
        self.connection.send_command(&Outgoing::with_text(kind, &settings.to_string()))?;
        let reply = self.receive(Wait::Sleep, |message| {
            expect(message, kind + 1)?;
            if message.packet.header.has(flag::ERROR) {
                let failure = Failure::read(message.packet.payload)?;
                let error = Error::internal(failure.message);
                return Ok(Err(with_traceback(error, failure.traceback)));
            }
            let value = serde_json::from_slice(message.packet.payload.meta);
            value.map(Ok).map_err(|_| Malformed("it is not JSON"))
        });
        reply.unwrap_or_else(|_| {
            let exit = self.connection.lifecycle.kill();
            let last_lines = self.join_event_thread();
            let exit = exit.map_or_else(String::new, |exit| exit.to_string());
            let identity = self.connection.lifecycle.identity().clone();
            Err(StartError::Exited { identity, exit, last_lines }.into())
        })
    }

    /// The model is initialized: from now on the end of the worker is a failure.
    pub fn set_ready(&mut self) -> Result<()> {
        self.is_ready = true;
        let lifecycle = &self.connection.lifecycle;
        lifecycle.expect_running();
        // It may have died just before, which was not reported then.
        lifecycle.error().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Waits for the next reply. A malformed one ends the worker.
    pub fn receive<T>(
        &mut self,
        wait: Wait,
        read: impl FnOnce(&Message<'_>) -> Result<T, Malformed>,
    ) -> Result<T, ReceiveError> {
        let connection = &*self.connection;
        let length = match wait {
            Wait::Until(deadline) => connection.receive_reply_until(&mut self.buffer, deadline),
            Wait::Sleep => connection.receive_reply(&mut self.buffer, Duration::ZERO),
            Wait::SpinThenSleep => {
                let started = Instant::now();
                let length = connection.receive_reply(&mut self.buffer, self.spin.budget());
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
        connection.open(packet, read).map_err(|malformed| {
            self.mark_dead(Some(&malformed.to_string()));
            ReceiveError::Disconnected
        })
    }

    /// Raises the alarm before any request is answered: a client that sends the next one at once then waits for the
    /// restarted worker.
    fn mark_dead(&self, cause: Option<&str>) {
        let error = self.connection.lifecycle.mark_dead(cause);
        self.connection.lifecycle.raise_alarm(&error);
    }

    /// The last lines of stderr.
    fn join_event_thread(&mut self) -> String {
        self.event_thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// Lets the model finalize, within the limit.
    fn finalize(&mut self) {
        let connection = self.connection.clone();
        connection.in_flight.requests.wait_until_closed(self.timeout);
        let deadline = Instant::now() + self.timeout;
        if connection.send_command(&Outgoing::new(kind::FINALIZE, 0)).is_err() {
            return;
        }
        let finalized = self.receive(Wait::Until(deadline), |m| expect(m, kind::FINALIZED));
        if finalized.is_err() {
            let (seconds, identity) = (self.timeout.as_secs(), connection.lifecycle.identity());
            log::warn!("{identity} did not finish within {seconds} s and is killed");
            return;
        }
        connection.lifecycle.wait_for_exit(deadline);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.connection.lifecycle.expect_exit();
        if self.is_ready && !self.connection.lifecycle.is_dead() {
            self.finalize();
        }
        self.connection.lifecycle.kill();
        self.join_event_thread();
    }
}

/// Checks that a reply is of this kind.
pub(crate) fn expect(message: &Message<'_>, kind: u8) -> Result<(), Malformed> {
    let is_expected = message.packet.header.kind == kind;
    is_expected.then_some(()).ok_or(Malformed("it is not the reply that was waited for"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;

    /// The error of starting a shell script as a worker.
    fn start_error(script: &str, seconds: u64) -> String {
        let folder = tempfile::tempdir().expect("folder");
        let python = folder.path().join("python");
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("executable");
        start(python, seconds)
    }

    fn start(python: PathBuf, seconds: u64) -> String {
        let environment = Environment {
            python,
            variables: vec![("TEXT".into(), "last line".into())],
            description: "a script".to_owned(),
        };
        let started = Worker::start(WorkerOptions {
            identity: WorkerIdentity { model: "m".into(), instance: Some("m_0_0".to_owned()) },
            config: None,
            environment: Arc::new(environment),
            package: Path::new("/nowhere"),
            arenas: ArenaLimits { initial: 4096, growth: 4096, max: None },
            timeout: Duration::from_secs(seconds),
            server: ServerAccess::default(),
            alarm: InstanceAlarm::default(),
        });
        started.err().expect("an error").message().to_owned()
    }

    #[test]
    fn the_error_of_a_program_that_exits_names_its_exit() {
        let text = start_error("echo $TEXT >&2; exit 7", 30);
        for part in ["model 'm'", "m_0_0", "a script", "exited with code 7", "last line"] {
            assert!(text.contains(part), "{text}");
        }
        let text = start_error("kill -9 $$", 30);
        assert!(text.contains("SIGKILL"), "{text}");
        let text = start(PathBuf::from("/nowhere/python"), 30);
        assert!(text.contains("'/nowhere/python' cannot be executed"), "{text}");
    }

    #[test]
    fn a_program_without_hello_times_out() {
        let text = start_error("sleep 600 & sleep 600", 1);
        assert!(text.contains("stub-timeout-seconds"), "{text}");
    }

    #[test]
    fn a_program_that_sends_nonsense_is_killed() {
        let nonsense = r#"exec python3 -c "import os,sys; os.write(int(sys.argv[1]), b'nonsense')
import time; time.sleep(600)" $2"#;
        let text = start_error(nonsense, 30);
        assert!(text.contains("malformed"), "{text}");
    }
}
