//! Starts the event thread of a worker, and from there its process.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use galatea_types::Result;

use crate::{
    connection::Connection,
    environment::Environment,
    event_thread::EventThread,
    process::{CommandLine, OutputPipes, Process},
    start_error::StartError,
    transport::WorkerEnds,
};

/// The thread that serves a worker's events. Joined, it gives the last lines of the worker's stderr.
pub(crate) type EventThreadHandle = JoinHandle<String>;

/// Starts the event thread, which starts the process: the kernel ends a worker with the thread that started it,
/// and this one lives as long as the worker.
pub(crate) fn spawn(
    connection: &Arc<Connection>,
    ends: WorkerEnds,
    environment: &Arc<Environment>,
    package: &Path,
) -> Result<EventThreadHandle> {
    let (started, is_started) = mpsc::channel();
    let start = Start {
        connection: connection.clone(),
        ends,
        environment: environment.clone(),
        package: package.to_owned(),
    };
    let run = move || match start.process() {
        Err(error) => {
            let _ = started.send(Err(error));
            String::new()
        }
        Ok((connection, output)) => {
            let _ = started.send(Ok(()));
            drop(started);
            EventThread::new(connection, output).run()
        }
    };
    let thread = thread::Builder::new().name("python-events".to_owned()).spawn(run);
    let thread = thread.map_err(StartError::NoThread)?;
    is_started.recv().unwrap_or_else(|_| Err(StartError::ThreadEnded.into()))?;
    Ok(thread)
}

/// What the event thread starts the process with.
struct Start {
    connection: Arc<Connection>,
    /// Closed once the worker has them: open here, they would keep the sockets open after its end.
    ends: WorkerEnds,
    environment: Arc<Environment>,
    package: PathBuf,
}

impl Start {
    fn process(self) -> Result<(Arc<Connection>, OutputPipes)> {
        let [inbox, outbox] = self.connection.memory.descriptors();
        let line = CommandLine {
            python: &self.environment.python,
            variables: &self.environment.variables,
            package: &self.package,
            descriptors: self.ends.descriptors(inbox, outbox),
        };
        let (process, output) = Process::start(&line).map_err(|e| self.not_executed(e))?;
        self.connection.lifecycle.set_process(process);
        Ok((self.connection, output))
    }

    fn not_executed(&self, error: io::Error) -> StartError {
        let identity = self.connection.lifecycle.identity().clone();
        let python = self.environment.python.clone();
        StartError::NotExecuted { identity, python, error }
    }
}
