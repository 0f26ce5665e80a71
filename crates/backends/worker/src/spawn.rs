//! Starts the event thread of a worker, and from there its process.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use galatea_types::{Error, Result};

use crate::{
    connection::{Connection, Services},
    event_thread::EventThread,
    process::{OutputPipes, Process},
    program::Program,
    transport::WorkerEnds,
};

/// The thread that serves a worker's events. It returns the last lines of the worker's stderr.
pub(crate) type EventThreadHandle = JoinHandle<String>;

/// Starts the event thread, which starts the process. The kernel ends a worker together with the thread that started it, and
/// this one lives as long as the worker.
pub(crate) fn spawn<S: Services>(
    connection: &Arc<Connection<S>>,
    ends: WorkerEnds,
    program: &Arc<Program>,
) -> Result<EventThreadHandle> {
    let (started, is_started) = mpsc::channel();
    let (connection, program) = (connection.clone(), program.clone());
    let run = move || match start_process(&connection, ends, &program) {
        Err(error) => {
            let _ = started.send(Err(error));
            String::new()
        }
        Ok(output) => {
            let _ = started.send(Ok(()));
            drop(started);
            EventThread::new(connection, output).run()
        }
    };
    let thread = thread::Builder::new().name("worker-events".to_owned()).spawn(run);
    let thread = thread.map_err(|e| Error::unavailable(format!("no thread for a worker: {e}")))?;
    is_started.recv().unwrap_or_else(|_| Err(Error::internal("a worker's thread ended early")))?;
    Ok(thread)
}

/// Starts the process, then closes the worker's ends: open here, they would keep the sockets open after its end.
fn start_process<S>(
    connection: &Connection<S>,
    ends: WorkerEnds,
    program: &Program,
) -> Result<OutputPipes> {
    let [inbox, outbox] = connection.memory.descriptors();
    let started = Process::start(program, ends.descriptors(inbox, outbox));
    let (process, output) = started.map_err(|error| {
        let identity = connection.lifecycle.identity();
        Error::unavailable(format!(
            "cannot start a {} for {identity}: the {} '{}' cannot be executed: {error}{}",
            identity.role,
            program.role,
            program.path.display(),
            program.isolation_hint()
        ))
    })?;
    connection.lifecycle.set_process(process);
    Ok(output)
}
