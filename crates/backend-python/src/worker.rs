//! The life of one worker: started, set up, asked, finished.

use std::{
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use galatea_backend::{InstanceAlarm, ServerAccess};
use galatea_config::ModelConfig;
use galatea_types::{Error, Result};
use serde_json::Value;

use crate::{
    environment::Environment,
    identity::Identity,
    link::{Link, Silence, WorkerEnds, descriptors},
    memory::ArenaLimits,
    packing::Message,
    process::{CommandLine, Process},
    side::Side,
    spin::Spin,
    wire::{Malformed, Outgoing, PACKET_LIMIT, flag, kind},
};

/// What a worker is made from.
pub(crate) struct WorkerPlan<'a> {
    pub identity: Identity,
    /// `None`: it only completes a configuration.
    pub config: Option<Arc<ModelConfig>>,
    pub environment: Arc<Environment>,
    pub package: &'a Path,
    pub arenas: ArenaLimits,
    pub patience: Duration,
    pub server: ServerAccess,
    pub alarm: InstanceAlarm,
}

/// How a message is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiting {
    Until(Instant),
    Asleep,
    /// At first without sleeping, where that has been worth it: see [`Spin`].
    Awake,
}

/// A running worker. Dropping it finishes the model and ends the process.
pub(crate) struct Worker {
    link: Arc<Link>,
    environment: Arc<Environment>,
    alarm: InstanceAlarm,
    patience: Duration,
    /// Gives the last lines of stderr.
    side: Option<JoinHandle<String>>,
    buffer: Vec<u8>,
    spin: Spin,
    is_ready: bool,
}

impl Worker {
    /// Starts the interpreter and waits until it runs the worker's code.
    pub fn start(plan: WorkerPlan<'_>) -> Result<Self> {
        let identity = plan.identity.clone();
        let failed = |error: std::io::Error| {
            Error::unavailable(format!("cannot start a Python worker for {identity}: {error}"))
        };
        let alarm = plan.alarm.clone();
        let (link, ends) =
            Link::new(plan.identity, plan.config, plan.arenas, plan.server, plan.alarm)
                .map_err(failed)?;
        // What happens while it starts is told by the error of starting it.
        link.expect_end();
        let link = Arc::new(link);
        let side = begin(&link, ends, &plan.environment, plan.package)?;
        let mut worker = Self {
            link,
            environment: plan.environment,
            alarm,
            patience: plan.patience,
            side: Some(side),
            buffer: vec![0; PACKET_LIMIT],
            spin: Spin::default(),
            is_ready: false,
        };
        worker.await_hello()?;
        Ok(worker)
    }

    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn await_hello(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        let python = self.environment.description.clone();
        let hello = self.receive(Waiting::Until(deadline), |message| {
            expect(message, kind::HELLO)?;
            let text = message.packet.text()?.to_owned();
            Ok(if message.packet.header.has(flag::ERROR) { Err(text) } else { Ok(text) })
        });
        match hello {
            Ok(Ok(hello)) => {
                let process = self.link.process.get().map(Process::id).unwrap_or_default();
                log::debug!("{}: process {process} runs {python}: {hello}", self.link.identity);
                Ok(())
            }
            Ok(Err(text)) => Err(self.failed_start(&text)),
            Err(Silence::TooLate) => {
                let seconds = self.patience.as_secs();
                let text = format!("it did not start within {seconds} s (stub-timeout-seconds)");
                Err(self.failed_start(&text))
            }
            Err(Silence::Gone) => {
                let reason = self.link.death().map(|e| e.message().to_owned());
                Err(self.failed_start(
                    &reason.filter(|r| r.contains(": malformed")).unwrap_or_default(),
                ))
            }
        }
    }

    /// Ends a worker that did not start. The error says what is known: `text`, or how it ended and what it
    /// wrote at last.
    fn failed_start(&mut self, text: &str) -> Error {
        let ending = self.link.process.get().and_then(Process::end);
        let last_lines = self.join_side();
        let text = match (text, ending) {
            ("", Some(ending)) => format!("it {ending}{last_lines}"),
            (text, _) => text.to_owned(),
        };
        let (identity, python) = (&self.link.identity, &self.environment);
        Error::internal(format!(
            "the Python worker of {identity} failed to start with {} ({}): {text}",
            python.python.display(),
            python.description
        ))
    }

    /// One question, one reply of the kind after it. An error of the model is `Err(text)` inside.
    pub fn ask(
        &mut self,
        kind: u8,
        question: &Value,
    ) -> Result<std::result::Result<Value, String>> {
        self.link.send_work(&Outgoing::with_text(kind, &question.to_string()))?;
        let reply = self.receive(Waiting::Asleep, |message| {
            expect(message, kind + 1)?;
            if message.packet.header.has(flag::ERROR) {
                return Ok(Err(message.packet.text()?.to_owned()));
            }
            let value = serde_json::from_slice(message.packet.payload.meta);
            value.map(Ok).map_err(|_| Malformed("it is not JSON"))
        });
        reply.map_err(|_| {
            let ending = self.link.process.get().and_then(Process::end);
            let last_lines = self.join_side();
            let ending = ending.map_or_else(String::new, |e| e.to_string());
            let identity = &self.link.identity;
            let text =
                format!("the Python worker of {identity} {ending} before the model was ready");
            Error::internal(text + &last_lines)
        })
    }

    /// From here on its end is an accident.
    pub fn set_up(&mut self) -> Result<()> {
        self.is_ready = true;
        self.link.expect_life();
        // It may have died just before, which then nobody was told.
        self.link.death().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The next message on `work`. One that is malformed ends the worker.
    pub fn receive<T>(
        &mut self,
        waiting: Waiting,
        read: impl FnOnce(&Message<'_>) -> std::result::Result<T, Malformed>,
    ) -> std::result::Result<T, Silence> {
        let length = match waiting {
            Waiting::Until(deadline) => self.link.receive_work(&mut self.buffer, Some(deadline)),
            Waiting::Asleep => self.link.receive_reply(&mut self.buffer, Duration::ZERO),
            Waiting::Awake => {
                let asked = Instant::now();
                let length = self.link.receive_reply(&mut self.buffer, self.spin.budget());
                self.spin.note(asked.elapsed());
                length
            }
        };
        let length = length.inspect_err(|&silence| self.note(silence, None))?;
        let packet = self.buffer.get(..length).unwrap_or_default();
        self.link.open(packet, read).map_err(|malformed| {
            self.note(Silence::Gone, Some(&malformed.to_string()));
            Silence::Gone
        })
    }

    /// Raises the alarm before anybody is told of the end: a client that asks again at once is then kept
    /// waiting for the next worker.
    fn note(&self, silence: Silence, cause: Option<&str>) {
        if silence == Silence::Gone {
            let error = self.link.bury(cause);
            if !self.link.is_ending() {
                self.alarm.raise(error);
            }
        }
    }

    fn join_side(&mut self) -> String {
        self.side.take().and_then(|side| side.join().ok()).unwrap_or_default()
    }

    /// Lets the model finish, within the limit.
    fn finalize(&mut self) {
        self.link.streams.wait_until_closed(self.patience);
        let deadline = Instant::now() + self.patience;
        if self.link.send_work(&Outgoing::new(kind::FINALIZE, 0)).is_err() {
            return;
        }
        let finalized = self.receive(Waiting::Until(deadline), |m| expect(m, kind::FINALIZED));
        if finalized.is_err() {
            let seconds = self.patience.as_secs();
            log::warn!("{} did not finish within {seconds} s and is killed", self.link.identity);
            return;
        }
        self.link.wait_for_end(deadline);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.link.expect_end();
        if self.is_ready && self.link.death().is_none() {
            self.finalize();
        }
        self.link.process.get().and_then(Process::end);
        self.join_side();
    }
}

pub(crate) fn expect(message: &Message<'_>, kind: u8) -> std::result::Result<(), Malformed> {
    let is_expected = message.packet.header.kind == kind;
    is_expected.then_some(()).ok_or(Malformed("it is not the reply that was waited for"))
}

/// Starts the side thread, which starts the process: a worker dies with the thread that started it, and
/// this one lives as long as the worker.
fn begin(
    link: &Arc<Link>,
    ends: WorkerEnds,
    environment: &Arc<Environment>,
    package: &Path,
) -> Result<JoinHandle<String>> {
    let (started, is_started) = mpsc::channel();
    let (on_thread, environment, package) = (link.clone(), environment.clone(), package.to_owned());
    let run = move || {
        let line = CommandLine {
            python: &environment.python,
            variables: &environment.variables,
            package: &package,
            descriptors: descriptors(&on_thread, &ends),
        };
        let process = Process::start(&line);
        // The worker has its own ends now; ours would keep the sockets open after its death.
        drop(ends);
        match process {
            Err(error) => {
                let _ = started.send(Err(cannot_execute(&on_thread, &environment, &error)));
                String::new()
            }
            Ok((process, output)) => {
                let _ = on_thread.process.set(process);
                let _ = started.send(Ok(()));
                drop(started);
                Side::new(on_thread, output).serve()
            }
        }
    };
    let thread = thread::Builder::new().name("python-side".to_owned()).spawn(run);
    let thread = thread.map_err(|e| Error::unavailable(format!("no thread for a worker: {e}")))?;
    is_started.recv().unwrap_or_else(|_| Err(Error::internal("a worker's thread ended early")))?;
    Ok(thread)
}

fn cannot_execute(link: &Link, environment: &Environment, error: &std::io::Error) -> Error {
    Error::unavailable(format!(
        "cannot start a Python worker for {}: the interpreter '{}' cannot be executed: {error}",
        link.identity,
        environment.python.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    use super::*;

    /// Why a program given as a shell script is no worker.
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
            variables: vec![("WORDS".into(), "last words".into())],
            description: "a script".to_owned(),
        };
        let started = Worker::start(WorkerPlan {
            identity: Identity { model: "m".into(), instance: Some("m_0_0".to_owned()) },
            config: None,
            environment: Arc::new(environment),
            package: Path::new("/nowhere"),
            arenas: ArenaLimits { initial: 4096, growth: 4096, max: None },
            patience: Duration::from_secs(seconds),
            server: ServerAccess::default(),
            alarm: InstanceAlarm::default(),
        });
        started.err().expect("an error").message().to_owned()
    }

    #[test]
    fn a_program_that_is_no_worker_is_named_with_its_end() {
        let text = start_error("echo $WORDS >&2; exit 7", 30);
        for part in ["model 'm'", "m_0_0", "a script", "exited with code 7", "last words"] {
            assert!(text.contains(part), "{text}");
        }
        let text = start_error("kill -9 $$", 30);
        assert!(text.contains("SIGKILL"), "{text}");
        let text = start(PathBuf::from("/nowhere/python"), 30);
        assert!(text.contains("'/nowhere/python' cannot be executed"), "{text}");
    }

    #[test]
    fn one_that_says_nothing_is_waited_for_no_longer_than_allowed() {
        let text = start_error("sleep 600 & sleep 600", 1);
        assert!(text.contains("stub-timeout-seconds"), "{text}");
    }

    #[test]
    fn one_that_talks_nonsense_is_stopped() {
        let nonsense = r#"exec python3 -c "import os,sys; os.write(int(sys.argv[1]), b'nonsense')
import time; time.sleep(600)" $2"#;
        let text = start_error(nonsense, 30);
        assert!(text.contains("malformed"), "{text}");
    }
}
