//! Starts the event thread of a worker, and from there its process.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use galatea_types::Result;

use crate::{
    connection::{Connection, Services},
    event_thread::EventThread,
    process::{CommandLine, OutputPipes, Process},
    program::Program,
    start_error::StartError,
    transport::WorkerEnds,
};

/// The thread that serves a worker's events. Joined, it gives the last lines of the worker's stderr.
pub(crate) type EventThreadHandle = JoinHandle<String>;

/// Starts the event thread, which starts the process: the kernel ends a worker with the thread that started it,
/// and this one lives as long as the worker.
pub(crate) fn spawn<S: Services>(
    connection: &Arc<Connection<S>>,
    ends: WorkerEnds,
    program: &Arc<Program>,
) -> Result<EventThreadHandle> {
    let (started, is_started) = mpsc::channel();
    let start = Start { connection: connection.clone(), ends, program: program.clone() };
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
    let thread = thread::Builder::new().name("worker-events".to_owned()).spawn(run);
    let thread = thread.map_err(StartError::NoThread)?;
    is_started.recv().unwrap_or_else(|_| Err(StartError::ThreadEnded.into()))?;
    Ok(thread)
}

/// What the event thread starts the process with.
struct Start<S> {
    connection: Arc<Connection<S>>,
    /// Closed once the worker has them: open here, they would keep the sockets open after its end.
    ends: WorkerEnds,
    program: Arc<Program>,
}

impl<S: Services> Start<S> {
    fn process(self) -> Result<(Arc<Connection<S>>, OutputPipes)> {
        let [inbox, outbox] = self.connection.memory.descriptors();
        let line = CommandLine {
            program: &self.program,
            descriptors: self.ends.descriptors(inbox, outbox),
        };
        let (process, output) = Process::start(&line).map_err(|e| self.not_executed(e))?;
        self.connection.lifecycle.set_process(process);
        Ok((self.connection, output))
    }

    fn not_executed(&self, error: io::Error) -> StartError {
        let identity = self.connection.lifecycle.identity().clone();
        let program = self.program.clone();
        StartError::NotExecuted { identity, program, error }
    }
}
